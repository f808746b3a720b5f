package resolve_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
	"github.com/quayside/quayside/resolve/explain"
)

func (s *scenario) merge(name string) {
	pins := slices.Clone(s.lock.Pins)
	for _, p := range s.saved[name].Pins {
		if _, ok := s.lock.Pin(p.Namespace, p.Package); !ok {
			pins = append(pins, p)
		}
	}
	s.lock = lockfile.New(pins)
}

func (s *scenario) show(args []string) {
	text := ""
	switch args[0] {
	case "why":
		r, err := explain.Why(s.lock, &s.decl, "ops", args[1])
		if text = fmt.Sprint(err); err == nil {
			text = r.Text()
		}
	case "whynot":
		pkg, version, _ := strings.Cut(args[1], "@")
		if version != "" {
			_, version = split("x" + version)
		}
		o, err := resolve.WhyNot(s.index(), &s.decl, s.lock, s.opt, resolve.Target{Namespace: "ops", Package: pkg, Version: version})
		if text = fmt.Sprint(err); err == nil {
			text = o.Text()
		}
	case "tree":
		text = explain.TreeText(explain.Tree(s.lock))
	case "outdated":
		for _, a := range resolve.Outdated(s.index(), &s.decl, s.lock, s.opt, "") {
			dropped := ""
			if a.Dropped != "" {
				dropped = " dropped=" + a.Dropped
			}
			if a.HeldBack != "" {
				dropped += " heldBack=" + string(a.HeldBack)
			}
			text += fmt.Sprintf("%s/%s %s next=%s reachable=%s hops=%d head=%s others=%v deprecated=%v %s%s\n", a.Namespace, a.Package, a.Pinned,
				a.Next, a.Reachable, a.Hops, a.Head, a.OtherChannels, a.Deprecated, a.HeldBackReason, dropped)
		}
	}
	s.shown = strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}
