package fbc

import (
	"cmp"
	"fmt"

	"github.com/quayside/quayside/catalog/lifecycle"
)

// lifecycles is a document that says how long versions of a package are
// supported. Its faults are kept in it: the catalog is as good as without it.
func lifecycles(schema, pkg member[object]) members[object] {
	versions := at("versions", func(o *object) *[]lifecycle.Version { return &o.lifecycle.Versions },
		distinct(maxReleases, release(), func(v lifecycle.Version) string { return v.Name }))
	return members[object]{schema, apart(pkg), apart(versions), apart(others[object]())}
}

// apart is a field whose faults are kept in the document.
func apart(m member[object]) member[object] {
	read := m.read
	m.read = func(d *decoder, o *object) {
		d.aside = &o.lifecycle.Faults
		read(d, o)
		d.aside = nil
	}
	return m
}

// release is what is said of one MAJOR.MINOR.
func release() form[lifecycle.Version] {
	return sound(members[lifecycle.Version]{
		at("name", func(v *lifecycle.Version) *string { return &v.Name }, checked(lifecycle.CheckMinor)),
		at("phases", func(v *lifecycle.Version) *[]lifecycle.Phase { return &v.Phases }, phases()),
		optional("platformCompatibility", func(v *lifecycle.Version) *[]lifecycle.Platform { return &v.Platforms }, platforms()),
		others[lifecycle.Version](),
	}.form(), func(v *lifecycle.Version) error {
		return cmp.Or(missing("name", v.Name == ""), missing("phases", len(v.Phases) == 0))
	})
}

// phases are phases that follow each other.
func phases() form[[]lifecycle.Phase] {
	phase := sound(members[lifecycle.Phase]{
		at("name", func(p *lifecycle.Phase) *string { return &p.Name }, text(maxName)),
		at("startDate", func(p *lifecycle.Phase) *string { return &p.Start }, checked(lifecycle.CheckDay)),
		at("endDate", func(p *lifecycle.Phase) *string { return &p.End }, checked(lifecycle.CheckDay)),
		others[lifecycle.Phase](),
	}.form(), func(p *lifecycle.Phase) error {
		if err := cmp.Or(missing("name", p.Name == ""), missing("startDate", p.Start == ""), missing("endDate", p.End == "")); err != nil {
			return err
		}
		return p.Check()
	})
	f := list(maxPhases, phase)
	f.read = func(d *decoder, into *[]lifecycle.Phase) {
		faults := len(*d.aside)
		d.items(maxPhases, func(n int) {
			*into = append(*into, lifecycle.Phase{})
			d.in.kind()
			pos := d.here()
			if phase.read(d, &(*into)[n]); n == 0 || len(*d.aside) > faults {
				return
			}
			if err := (*into)[n].Follows((*into)[n-1]); err != nil {
				d.fault(pos, "%s: %v", d.where(), err)
			}
		})
	}
	return f
}

// platform is an item of platformCompatibility.
type platform struct {
	name     string
	versions []string
}

// platforms are pairs of a platform and a version, which are written by platform.
func platforms() form[[]lifecycle.Platform] {
	one := sound(members[platform]{
		at("name", func(p *platform) *string { return &p.name }, text(maxName)),
		at("versions", func(p *platform) *[]string { return &p.versions }, distinct(maxVersions, checked(lifecycle.CheckMinor), func(s string) string { return s })),
		others[platform](),
	}.form(), func(p *platform) error {
		return cmp.Or(missing("name", p.name == ""), missing("versions", len(p.versions) == 0))
	})
	all := distinct(maxPlatforms, one, func(p platform) string { return p.name })
	return form[[]lifecycle.Platform]{
		read: func(d *decoder, into *[]lifecycle.Platform) {
			var ps []platform
			all.read(d, &ps)
			for _, p := range ps {
				for _, v := range p.versions {
					*into = append(*into, lifecycle.Platform{Name: p.name, Version: v})
				}
			}
		},
		write: func(e *encoder, from *[]lifecycle.Platform) {
			var ps []platform
			for _, p := range *from {
				if len(ps) == 0 || ps[len(ps)-1].name != p.Name {
					ps = append(ps, platform{name: p.Name})
				}
				last := &ps[len(ps)-1]
				last.versions = append(last.versions, p.Version)
			}
			all.write(e, &ps)
		},
		empty: func(from *[]lifecycle.Platform) bool { return len(*from) == 0 },
	}
}

// distinct is an array of which no two elements have the same name.
func distinct[T any](most int, each form[T], name func(T) string) form[[]T] {
	f := list(most, each)
	f.read = func(d *decoder, into *[]T) {
		seen := map[string]bool{}
		d.items(most, func(int) {
			var one T
			d.in.kind()
			pos := d.here()
			each.read(d, &one)
			if key := name(one); key != "" && seen[key] {
				d.fault(pos, "%s: %q stands here twice", d.where(), key)
			} else {
				seen[key] = true
				*into = append(*into, one)
			}
		})
	}
	return f
}

// checked is a text that check finds nothing wrong with.
func checked(check func(string) error) form[string] {
	return sound(text(maxName), func(s *string) error { return check(*s) })
}

// sound is a value that check finds nothing wrong with, once it was read
// without a fault.
func sound[T any](f form[T], check func(*T) error) form[T] {
	read := f.read
	f.read = func(d *decoder, into *T) {
		d.in.kind()
		pos, faults := d.here(), len(*d.aside)
		if read(d, into); d.in.failed() != nil || len(*d.aside) > faults {
			return
		}
		if err := check(into); err != nil {
			d.fault(pos, "%s: %v", d.where(), err)
		}
	}
	return f
}

// missing returns an error for a field that has to be there.
func missing(name string, is bool) error {
	if !is {
		return nil
	}
	return fmt.Errorf("no %s", name)
}
