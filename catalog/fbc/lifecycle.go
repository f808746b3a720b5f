package fbc

import (
	"cmp"
	"fmt"

	"github.com/quayside/quayside/internal/model"
)

// lifecycleFields returns the fields of a document with the support periods of a package. Its
// faults are stored in the document and do not invalidate the catalog.
func lifecycleFields(schema, pkg member[object]) members[object] {
	versions := fieldAt("versions", func(o *object) *[]model.SupportedVersion { return &o.lifecycle.Versions },
		distinctCodec(maxReleases, releaseCodec(), func(v model.SupportedVersion) string { return v.Name }))
	return members[object]{schema, tolerantField(pkg), tolerantField(versions), tolerantField(unknownFields[object]())}
}

// tolerantField returns a field whose faults are stored in the document.
func tolerantField(m member[object]) member[object] {
	read := m.read
	m.read = func(d *decoder, o *object) {
		d.tolerated = &o.lifecycle.Faults
		read(d, o)
		d.tolerated = nil
	}
	return m
}

// releaseCodec returns the codec of a MAJOR.MINOR version with its support periods.
func releaseCodec() codec[model.SupportedVersion] {
	return checkedCodec(members[model.SupportedVersion]{
		fieldAt("name", func(v *model.SupportedVersion) *string { return &v.Name }, checkedTextCodec(model.CheckMinor)),
		fieldAt("phases", func(v *model.SupportedVersion) *[]model.SupportPhase { return &v.Phases }, phasesCodec()),
		optionalField("platformCompatibility", func(v *model.SupportedVersion) *[]model.SupportedPlatform { return &v.Platforms }, platformsCodec()),
		unknownFields[model.SupportedVersion](),
	}.codec(), func(v *model.SupportedVersion) error {
		return cmp.Or(checkPresent("name", v.Name == ""), checkPresent("phases", len(v.Phases) == 0))
	})
}

// phasesCodec returns the codec of consecutive phases.
func phasesCodec() codec[[]model.SupportPhase] {
	phase := checkedCodec(members[model.SupportPhase]{
		fieldAt("name", func(p *model.SupportPhase) *string { return &p.Name }, textCodec(maxName)),
		fieldAt("startDate", func(p *model.SupportPhase) *string { return &p.Start }, checkedTextCodec(model.CheckDay)),
		fieldAt("endDate", func(p *model.SupportPhase) *string { return &p.End }, checkedTextCodec(model.CheckDay)),
		unknownFields[model.SupportPhase](),
	}.codec(), func(p *model.SupportPhase) error {
		if err := cmp.Or(checkPresent("name", p.Name == ""), checkPresent("startDate", p.Start == ""), checkPresent("endDate", p.End == "")); err != nil {
			return err
		}
		return p.Check()
	})
	f := listCodec(maxPhases, phase)
	f.read = func(d *decoder, into *[]model.SupportPhase) {
		faults := len(*d.tolerated)
		d.items(maxPhases, func(n int) {
			*into = append(*into, model.SupportPhase{})
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

// platformsCodec returns the codec of supported platform versions. The encoded form groups them by
// platform.
func platformsCodec() codec[[]model.SupportedPlatform] {
	one := checkedCodec(members[platform]{
		fieldAt("name", func(p *platform) *string { return &p.name }, textCodec(maxName)),
		fieldAt("versions", func(p *platform) *[]string { return &p.versions }, distinctCodec(maxVersions, checkedTextCodec(model.CheckMinor), func(s string) string { return s })),
		unknownFields[platform](),
	}.codec(), func(p *platform) error {
		return cmp.Or(checkPresent("name", p.name == ""), checkPresent("versions", len(p.versions) == 0))
	})
	all := distinctCodec(maxPlatforms, one, func(p platform) string { return p.name })
	return codec[[]model.SupportedPlatform]{
		read: func(d *decoder, into *[]model.SupportedPlatform) {
			var ps []platform
			all.read(d, &ps)
			for _, p := range ps {
				for _, v := range p.versions {
					*into = append(*into, model.SupportedPlatform{Name: p.name, Version: v})
				}
			}
		},
		write: func(e *encoder, from *[]model.SupportedPlatform) {
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
		empty: func(from *[]model.SupportedPlatform) bool { return len(*from) == 0 },
	}
}

// distinctCodec returns the codec of an array with unique names.
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

// checkedTextCodec returns the codec of a string that passes check.
func checkedTextCodec(check func(string) error) codec[string] {
	return checkedCodec(textCodec(maxName), func(s *string) error { return check(*s) })
}

// checkedCodec returns the codec of a value that must pass check. A value with decoding faults is
// not checked.
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

// checkPresent returns an error for a missing required field.
func checkPresent(name string, missing bool) error {
	if !missing {
		return nil
	}
	return fmt.Errorf("%s is missing", name)
}
