package resolve_test

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/resolve"
)

// split splits "a1.2" into package a and version 1.2.0.
func split(word string) (pkg, version string) {
	i := strings.IndexAny(word, "0123456789")
	pkg, version = word[:i], word[i:]
	rest := ""
	if j := strings.IndexAny(version, "-+"); j > 0 {
		version, rest = version[:j], version[j:]
	}
	for strings.Count(version, ".") < 2 {
		version += ".0"
	}
	return pkg, version + rest
}

func fullName(word string) string {
	if word == "" {
		return ""
	}
	pkg, version := split(word)
	return pkg + ".v" + version
}

// short returns the short form of a bundle's name: "a1.2" for a.v1.2.0.
func short(name string) string {
	pkg, version, _ := strings.Cut(name, ".v")
	return pkg + strings.TrimSuffix(strings.TrimSuffix(version, ".0"), ".0")
}

func (s *scenario) catalog(args []string) {
	if args[0] == "none" {
		delete(s.cats, args[1])
		return
	}
	ns := "olm"
	if len(args) > 2 {
		ns = args[2]
	}
	s.cur = args[0]
	if s.cats[s.cur] != nil {
		return
	}
	prio, err := strconv.Atoi(args[1])
	if err != nil {
		s.t.Fatal(err)
	}
	s.cats[s.cur] = &catalog.Content{
		ID: catalog.ID{Namespace: ns, Name: args[0]}, Priority: prio, Source: "dir:" + args[0],
	}
}

func (s *scenario) channel(name string, words []string) {
	pkg, _ := split(words[0][:max(1, strings.IndexAny(words[0]+"<", "<-~"))])
	c := s.cats[s.cur]
	i := slices.IndexFunc(c.Packages, func(p catalog.PackageData) bool { return p.Name == pkg })
	if i < 0 {
		c.Packages = append(c.Packages, catalog.PackageData{Name: pkg, DefaultChannel: name})
		i = len(c.Packages) - 1
	}
	p := &c.Packages[i]
	ch := catalog.ChannelData{Name: name}
	for _, w := range words {
		w, skipRange, _ := strings.Cut(w, "~")
		w, replaces, _ := strings.Cut(w, "<")
		skips := strings.Split(cmp.Or(replaces, w), "-")
		e := catalog.EntryData{SkipRange: strings.ReplaceAll(skipRange, "_", " ")}
		if replaces != "" {
			e.Name, e.Replaces = fullName(w), fullName(skips[0])
		} else {
			e.Name = fullName(skips[0])
		}
		for _, skip := range skips[1:] {
			e.Skips = append(e.Skips, fullName(skip))
		}
		ch.Entries = append(ch.Entries, e)
		if !slices.ContainsFunc(p.Bundles, func(b catalog.BundleData) bool { return b.Name == e.Name }) {
			p.Bundles = append(p.Bundles, catalog.BundleData{Name: e.Name, Image: "quay.io/example/" + e.Name + "@sha256:" + catalog.DigestOf([]byte(e.Name)).Hex()})
		}
	}
	if j := slices.IndexFunc(p.Channels, func(old catalog.ChannelData) bool { return old.Name == name }); j >= 0 {
		p.Channels[j] = ch
	} else {
		p.Channels = append(p.Channels, ch)
	}
}

func property(kind string, value any) catalog.Property {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return catalog.Property{Type: kind, Value: raw}
}

// api returns the fields of an API with the given kind and version (default: v1).
func api(kind string, version ...string) map[string]string {
	return map[string]string{"group": "example.com", "version": strings.Join(append(version, "v1")[:1], ""), "kind": kind}
}

func (s *scenario) bundle(args []string, rest string) {
	name, key := fullName(args[0]), fullName(args[0])
	if args[1] == "here" {
		args = slices.Delete(slices.Clone(args), 1, 2)
		key = s.cur + " " + name
	}
	add := func(p catalog.Property) { s.props[key] = append(s.props[key], p) }
	if s.meta[name] == nil {
		s.meta[name] = &catalog.Metadata{Known: true}
	}
	text := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(strings.TrimPrefix(rest, args[0])), args[1]))
	switch args[1] {
	case "needs":
		add(property("olm.package.required", map[string]string{"packageName": args[2], "versionRange": strings.Join(args[3:], " ")}))
	case "api":
		add(property("olm.gvk.required", api(args[2], args[3:]...)))
	case "gives":
		add(property("olm.gvk", api(args[2], args[3:]...)))
	case "deprecated":
		add(property("olm.deprecated", struct{}{}))
	case "constraint":
		add(catalog.Property{Type: "olm.constraint", Value: json.RawMessage(text)})
	case "label", "label.required":
		add(property("olm."+args[1], map[string]string{"label": args[2]}))
	case "openshift":
		add(property("olm.maxOpenShiftVersion", args[2]))
	case "modes":
		for _, m := range args[2:] {
			s.meta[name].InstallModes = append(s.meta[name].InstallModes, catalog.InstallMode(m))
		}
	case "image":
		s.images[key] = args[2]
	case "as":
		s.versions[key] = args[2]
		if len(args) > 3 {
			s.releases[key] = args[3]
		}
	case "kube":
		s.meta[name].MinKubeVersion = args[2]
	case "suggests":
		s.meta[name].Annotations = map[string]string{"operatorframework.io/suggested-namespace": args[2]}
	case "message":
		s.messages[name] = text
	default:
		s.t.Fatalf("bundle %s: unknown word", args[1])
	}
}

func (s *scenario) group(args []string) {
	ns := args[0]
	if ns == "none" {
		s.decl.OperatorGroups = slices.DeleteFunc(s.decl.OperatorGroups, func(g declare.OperatorGroup) bool { return g.Namespace == args[1] })
		return
	}
	g := declare.OperatorGroup{Namespace: ns, Name: "og", Pos: diag.Pos{File: "group.yaml", Line: 1}}
	if len(args) > 1 {
		g.TargetNamespaces = strings.Split(args[1], ",")
	}
	i := slices.IndexFunc(s.decl.OperatorGroups, func(old declare.OperatorGroup) bool { return old.Namespace == ns })
	if i >= 0 {
		s.decl.OperatorGroups[i] = g
		return
	}
	s.decl.OperatorGroups = append(s.decl.OperatorGroups, g)
}

func (s *scenario) sub(args []string) {
	d := declare.Subscription{
		Dialect: declare.V0, Name: args[0], Namespace: "ops", Package: args[0], Approval: declare.Automatic,
		Policy: declare.CatalogProvided, Catalog: &catalog.ID{Namespace: "olm", Name: "cat"},
	}
	for _, a := range args[1:] {
		k, v, found := strings.Cut(a, "=")
		switch {
		case !found && k == "v1":
			d.Dialect, d.Catalog = declare.V1, nil
		case !found && k == "policy":
			d.Dialect, d.Catalog, d.DefaultChannel = declare.OCM, nil, true
		case !found:
			d.Channels = append(d.Channels, k)
		case k == "ns":
			d.Namespace = v
		case k == "name":
			d.Name = v
		case k == "catalog" && v == "any":
			d.Dialect, d.Catalog = declare.Quayside, nil
		case k == "catalog":
			ns, name, _ := strings.Cut(v, "/")
			d.Catalog = &catalog.ID{Namespace: ns, Name: name}
		case k == "start":
			d.StartingCSV = fullName(v)
		case k == "range":
			d.Range = strings.ReplaceAll(v, "_", " ")
		case k == "only":
			for name := range strings.SplitSeq(v, ",") {
				d.Allowed = append(d.Allowed, fullName(name))
			}
		case k == "hold":
			d.Hold = v
		case k == "approval":
			d.Approval = declare.Approval(v)
		case k == "policy":
			d.Policy = declare.UpgradePolicy(v)
		case k == "installed":
			d.InstalledCSV = fullName(v)
		case k == "replaces":
			d.Dialect, d.Replaces = declare.Quayside, v
		case k == "watch":
			d.Watch = strings.Split(v, ",")
		default:
			s.t.Fatalf("sub: %s", a)
		}
	}
	d.Pos = diag.Pos{File: d.Name + ".yaml", Line: 1}
	d.Digest = catalog.DigestOf([]byte(strings.Join(args, " ")))
	s.decl.Subscriptions = slices.DeleteFunc(s.decl.Subscriptions, func(old declare.Subscription) bool { return old.Key() == d.Key() })
	s.decl.Subscriptions = append(s.decl.Subscriptions, d)
	slices.SortFunc(s.decl.Subscriptions, func(a, b declare.Subscription) int { return strings.Compare(a.Key(), b.Key()) })
}

func (s *scenario) csv(args []string) {
	pkg, version := split(args[0])
	c := declare.ClusterServiceVersion{
		Namespace: "ops", Name: fullName(args[0]), Version: version, Annotated: !slices.Contains(args, "bare"),
		Pos: diag.Pos{File: "dump.yaml", Line: 1},
	}
	for _, a := range args[1:] {
		if old, ok := strings.CutPrefix(a, "replaces="); ok {
			c.Replaces = fullName(old)
		}
	}
	if c.Annotated {
		c.Properties = append([]catalog.Property{property("olm.package", map[string]string{"packageName": pkg, "version": version})}, s.props[c.Name]...)
	}
	s.decl.CSVs = append(s.decl.CSVs, c)
}

// index returns the index of all catalogs, including the broken ones.
func (s *scenario) index() *catalog.Index {
	var cats []*catalog.Catalog
	broken := map[catalog.ID]error{}
	for _, c := range s.cats {
		content := *c
		content.Packages = slices.Clone(c.Packages)
		for i := range content.Packages {
			p := &content.Packages[i]
			p.Bundles = slices.DeleteFunc(slices.Clone(p.Bundles), func(b catalog.BundleData) bool {
				return !slices.ContainsFunc(p.Channels, func(ch catalog.ChannelData) bool {
					return slices.ContainsFunc(ch.Entries, func(e catalog.EntryData) bool { return e.Name == b.Name })
				})
			})
			for j := range p.Bundles {
				b := &p.Bundles[j]
				_, version, _ := strings.Cut(b.Name, ".v")
				version = cmp.Or(s.versions[c.ID.Name+" "+b.Name], version)
				b.Image = cmp.Or(s.images[c.ID.Name+" "+b.Name], b.Image)
				own := map[string]string{"packageName": p.Name, "version": version}
				if release, said := s.releases[c.ID.Name+" "+b.Name]; said {
					own["release"] = release
				}
				b.Properties = append([]catalog.Property{property("olm.package", own)}, s.props[b.Name]...)
				b.Properties = append(b.Properties, s.props[c.ID.Name+" "+b.Name]...)
				if m := s.meta[b.Name]; m != nil {
					b.Metadata = *m
				}
				if msg := s.messages[b.Name]; msg != "" {
					p.Deprecations = append(slices.Clone(p.Deprecations), catalog.DeprecationData{Schema: "olm.bundle", Name: b.Name, Message: msg})
				}
			}
		}
		raw, err := json.Marshal(content)
		if err != nil {
			s.t.Fatal(err)
		}
		content.Digest = catalog.DigestOf(raw)
		cat, err := catalog.New(content)
		if err != nil {
			broken[content.ID] = err
			continue
		}
		cats = append(cats, cat)
	}
	x, err := catalog.NewIndex(cats...)
	if err != nil {
		s.t.Fatal(err)
	}
	for id, err := range broken {
		x = x.WithBroken(id, err)
	}
	return x
}

func (s *scenario) resolve(args []string) { s.resolveIn(s.index(), args) }

func (s *scenario) resolveIn(x *catalog.Index, args []string) {
	opt := resolve.Options{GlobalNamespaces: []string{"olm"}}
	for _, a := range args {
		k, v, _ := strings.Cut(a, "=")
		switch k {
		case "upgrade":
			opt.Upgrade = true
		case "up":
			pkg, version, _ := strings.Cut(v, "@")
			t := resolve.Target{Namespace: "ops", Package: pkg}
			if version != "" {
				_, t.Version = split("x" + version)
			}
			opt.Named = append(opt.Named, t)
		case "hops":
			opt.Hops = -1
			if v != "all" {
				n, err := strconv.Atoi(v)
				if err != nil {
					s.t.Fatal(err)
				}
				opt.Hops = n
			}
		case "prune":
			opt.Prune = true
		case "unpin":
			opt.Unpin = append(opt.Unpin, resolve.Target{Namespace: "ops", Package: v})
		case "anew":
			opt.Named = append(opt.Named, resolve.Target{Namespace: "ops", Package: v, Reinstall: true})
		case "down":
			opt.AllowDowngrade = true
		case "keep":
			opt.KeepGoing = true
		case "kube":
			opt.KubernetesVersion = v
		case "openshift":
			opt.OpenShiftVersion = v
		case "warn":
			opt.Requirements = "warn"
		case "settled":
			opt.Settled = append(opt.Settled, v)
		case "uninstalls":
			opt.Uninstalls = true
		case "gone":
			opt.Removed = append(opt.Removed, v)
		case "lenient":
			opt.Lenient = true
		case "shared":
			opt.SharedDependencies = true
		case "overlap":
			opt.AllowOverlap = true
		case "global":
			opt.GlobalNamespaces = strings.Split(v, ",")
		case "from":
			opt.From = s.saved[v]
		case "held":
			opt.Held = append(opt.Held, resolve.Hold{Operator: "ops/" + v, Reason: "not upgradeable"})
		default:
			s.t.Fatalf("run: %s", a)
		}
	}
	s.opt = opt
	s.res, s.err = resolve.Resolve(x, &s.decl, s.lock, opt)
	if s.res != nil && s.res.Lock != nil {
		s.lock = s.res.Lock
	}
}

func word(ns, bundle string) string {
	if ns == "ops" {
		return short(bundle)
	}
	return ns + "/" + short(bundle)
}

func (s *scenario) pins() []string {
	if s.lock == nil {
		return nil
	}
	var out []string
	for _, p := range s.lock.Pins {
		out = append(out, word(p.Namespace, p.Bundle))
	}
	return sorted(out)
}

func (s *scenario) moves() []string {
	var out []string
	for _, m := range s.res.PinChanges {
		w := ""
		if m.From != "" {
			w = short(m.From)
		}
		w += ">"
		if m.To != "" {
			w += short(m.To)
		}
		out = append(out, w)
	}
	return sorted(out)
}

// recorded returns one field of the pin of a package, with bundles in short form.
func (s *scenario) recorded(pkg, field string) string {
	p, ok := s.lock.Pin("ops", pkg)
	if !ok {
		s.t.Fatalf("%s is not pinned", pkg)
	}
	words := func(names ...string) string {
		out := make([]string, len(names))
		for i, n := range names {
			if out[i] = n; n != "" {
				out[i] = short(n)
			}
		}
		return strings.Join(out, ",")
	}
	switch field {
	case "replaces":
		return words(p.Replaces)
	case "skipped":
		return words(p.Skipped...)
	case "remaining":
		return words(resolve.UpgradePath(s.index(), &s.decl, s.lock, p, s.opt)...)
	case "heldBack":
		for _, a := range resolve.Outdated(s.index(), &s.decl, s.lock, s.opt, "") {
			if a.Namespace == p.Namespace && a.Package == p.Package {
				return string(a.HeldBack)
			}
		}
		return ""
	case "catalog":
		return p.Catalog.ID.String()
	case "image":
		return p.Image
	case "version":
		return p.Version
	case "channel":
		return p.Channel
	case "watch":
		return strings.Join(p.WatchNamespaces, ",")
	}
	s.t.Fatalf("pin: no field %s", field)
	return ""
}
