package fbc

import (
	"cmp"
	"fmt"

	"github.com/quayside/quayside/catalog"
)

// lifecycleFields returns the fields of a lifecycle document. Their codecs store faults in the document,
// so that the faults do not invalidate the catalog.
func lifecycleFields(schema, pkg member[object]) members[object] {
	versions := fieldAt("versions", func(o *object) *[]catalog.SupportedVersion { return &o.lifecycle.Versions },
		distinctCodec(maxReleases, releaseCodec(), func(v catalog.SupportedVersion) string { return v.Name }))
	return members[object]{schema, tolerantField(pkg), tolerantField(versions), tolerantField(unknownFields[object]())}
}

// tolerantField returns a copy of m whose faults are stored in the lifecycle document instead of the builder.
func tolerantField(m member[object]) member[object] {
	read := m.read
	m.read = func(d *decoder, o *object) {
		d.tolerated = &o.lifecycle.Faults
		read(d, o)
		d.tolerated = nil
	}
	return m
}

// releaseCodec returns the codec of one MAJOR.MINOR version with its support phases and platforms.
func releaseCodec() codec[catalog.SupportedVersion] {
	return checkedCodec(members[catalog.SupportedVersion]{
		fieldAt("name", func(v *catalog.SupportedVersion) *string { return &v.Name }, checkedTextCodec(catalog.CheckMinor)),
		fieldAt("phases", func(v *catalog.SupportedVersion) *[]catalog.SupportPhase { return &v.Phases }, phasesCodec()),
		optionalField("platformCompatibility", func(v *catalog.SupportedVersion) *[]catalog.SupportedPlatform { return &v.Platforms }, platformsCodec()),
		unknownFields[catalog.SupportedVersion](),
	}.codec(), func(v *catalog.SupportedVersion) error {
		return cmp.Or(checkPresent("name", v.Name == ""), checkPresent("phases", len(v.Phases) == 0))
	})
}

// phasesCodec returns the codec of support phases. Each phase must begin on the day after the end of the
// previous phase.
func phasesCodec() codec[[]catalog.SupportPhase] {
	phase := checkedCodec(members[catalog.SupportPhase]{
		fieldAt("name", func(p *catalog.SupportPhase) *string { return &p.Name }, textCodec(maxName)),
		fieldAt("startDate", func(p *catalog.SupportPhase) *string { return &p.Start }, checkedTextCodec(catalog.CheckDay)),
		fieldAt("endDate", func(p *catalog.SupportPhase) *string { return &p.End }, checkedTextCodec(catalog.CheckDay)),
		unknownFields[catalog.SupportPhase](),
	}.codec(), func(p *catalog.SupportPhase) error {
		if err := cmp.Or(checkPresent("name", p.Name == ""), checkPresent("startDate", p.Start == ""), checkPresent("endDate", p.End == "")); err != nil {
			return err
		}
		return p.Check()
	})
	f := listCodec(maxPhases, phase)
	f.read = func(d *decoder, into *[]catalog.SupportPhase) {
		faults := len(*d.tolerated)
		d.items(maxPhases, func(n int) {
			*into = append(*into, catalog.SupportPhase{})
			d.in.kind()
			pos := d.nextPos()
			if phase.read(d, &(*into)[n]); n == 0 || len(*d.tolerated) > faults {
				return
			}
			if err := (*into)[n].CheckFollows((*into)[n-1]); err != nil {
				d.fault(pos, "%s: %v", d.pathText(), err)
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

// platformsCodec returns the codec of supported platform versions. In JSON, they are grouped by
// platform.
func platformsCodec() codec[[]catalog.SupportedPlatform] {
	one := checkedCodec(members[platform]{
		fieldAt("name", func(p *platform) *string { return &p.name }, textCodec(maxName)),
		fieldAt("versions", func(p *platform) *[]string { return &p.versions }, distinctCodec(maxVersions, checkedTextCodec(catalog.CheckMinor), func(s string) string { return s })),
		unknownFields[platform](),
	}.codec(), func(p *platform) error {
		return cmp.Or(checkPresent("name", p.name == ""), checkPresent("versions", len(p.versions) == 0))
	})
	all := distinctCodec(maxPlatforms, one, func(p platform) string { return p.name })
	return codec[[]catalog.SupportedPlatform]{
		read: func(d *decoder, into *[]catalog.SupportedPlatform) {
			var ps []platform
			all.read(d, &ps)
			for _, p := range ps {
				for _, v := range p.versions {
					*into = append(*into, catalog.SupportedPlatform{Name: p.name, Version: v})
				}
			}
		},
		write: func(e *encoder, from *[]catalog.SupportedPlatform) {
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
		empty: func(from *[]catalog.SupportedPlatform) bool { return len(*from) == 0 },
	}
}

// distinctCodec returns the codec of an array whose elements have different names.
func distinctCodec[T any](most int, each codec[T], name func(T) string) codec[[]T] {
	f := listCodec(most, each)
	f.read = func(d *decoder, into *[]T) {
		seen := map[string]bool{}
		d.items(most, func(int) {
			var one T
			d.in.kind()
			pos := d.nextPos()
			each.read(d, &one)
			if key := name(one); key != "" && seen[key] {
				d.fault(pos, "%s: %q appears twice", d.pathText(), key)
			} else {
				seen[key] = true
				*into = append(*into, one)
			}
		})
	}
	return f
}

// checkedTextCodec returns the codec of a string. An error of check is a fault.
func checkedTextCodec(check func(string) error) codec[string] {
	return checkedCodec(textCodec(maxName), func(s *string) error { return check(*s) })
}

// checkedCodec returns f with a check of the decoded value. An error of check is a fault. A value
// with decoding faults is not checked.
func checkedCodec[T any](f codec[T], check func(*T) error) codec[T] {
	read := f.read
	f.read = func(d *decoder, into *T) {
		d.in.kind()
		pos, faults := d.nextPos(), len(*d.tolerated)
		if read(d, into); d.in.failed() != nil || len(*d.tolerated) > faults {
			return
		}
		if err := check(into); err != nil {
			d.fault(pos, "%s: %v", d.pathText(), err)
		}
	}
	return f
}

// checkPresent returns an error that names a required field if it is missing.
func checkPresent(name string, missing bool) error {
	if !missing {
		return nil
	}
	return fmt.Errorf("%s is missing", name)
}
