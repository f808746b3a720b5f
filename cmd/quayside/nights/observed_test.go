package nights_test

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/quayside/quayside/internal/health"
	"github.com/quayside/quayside/internal/model"
)

// observations are the observed files of one night.
type observations struct {
	now     string          // of the night
	tonight []string        // files about dev, as of the current time
	held    map[string]bool // operators of dev that they hold back
}

// clock returns the time of this night's job.
func (f *fleet) clock() time.Time {
	return time.Date(2025, 1, 1, 3, 0, 0, 0, time.UTC).AddDate(0, 0, f.night)
}

// observe writes what is observed tonight in each cluster: the lock of the main branch, or with a
// fault the one of the night before, unhealthy operators, contradictions, or nothing.
func (f *fleet) observe(calm bool) observations {
	out := observations{now: f.clock().Format(time.RFC3339), held: map[string]bool{}}
	check(f.t, os.RemoveAll(filepath.Join(f.dir, "tonight")))
	for _, env := range environments() {
		lock := f.lockAt("main", env)
		for i := range 2 {
			s := health.Summary{At: f.clock(), Environment: env, Cluster: fmt.Sprintf("%s-%d", env, i+1), ClusterUID: fmt.Sprintf("uid-%s-%d", env, i+1)}
			fault := f.rand.IntN(12)
			if calm {
				fault = 11
			}
			if fault == 0 {
				continue // unreachable
			}
			contradicts := s
			for _, pin := range lock.Pins {
				o := health.OperatorHealth{
					Namespace: pin.Namespace, Package: pin.Package, Version: pin.Version, Pin: pin.Checksum(), Bundle: pin.BundleDigest(),
					Applied: []string{pin.Version}, State: health.StateReady, Upgradeable: "True",
				}
				bad := fault <= 3 && f.chance(40)
				other := o
				switch {
				case !bad:
				case fault == 1:
					o.State, o.Message = health.StateFailed, "a pod crashes"
				case fault == 2:
					o.Upgradeable, o.UpgradeMessage = "False", "migrating"
				case fault == 3: // late: it still has another version
					o.Pin, o.Bundle, o.Applied = model.Digest(health0), model.Digest(health0), []string{"0.0.1"}
				}
				if bad && fault < 3 && f.chance(30) {
					other.State, other.Message = health.StateReady, ""
				} else {
					other = o
				}
				if env == "dev" && bad {
					out.held[pin.Key()] = true
				}
				s.Operators, contradicts.Operators = append(s.Operators, o), append(contradicts.Operators, other)
			}
			if fault == 4 {
				s.At = s.At.AddDate(0, 0, -2) // an old file
				contradicts.At = s.At
			}
			f.save(s, "a")
			f.save(contradicts, "b")
			if env == "dev" {
				if fault == 4 {
					for _, o := range s.Operators {
						out.held[o.Namespace+"/"+o.Package] = true
					}
				}
				s.At = time.Now().Add(s.At.Sub(f.clock()))
				name := "tonight/" + s.Cluster + ".yaml"
				f.put(name, string(health.FormatObserved(s)))
				out.tonight = append(out.tonight, filepath.Join(f.dir, name))
			}
		}
	}
	return out
}

const health0 = "sha256:00000000000000000000000000000000000000000000000000000000000000aa"

// save adds an observed file, and removes the oldest ones.
func (f *fleet) save(s health.Summary, suffix string) {
	name := fmt.Sprintf("observed/%s-%d-%s.yaml", s.Cluster, f.night, suffix)
	f.put(name, string(health.FormatObserved(s)))
	f.files = append(f.files, name)
	for len(f.files) > 60 {
		check(f.t, os.Remove(filepath.Join(f.dir, f.files[0])))
		f.files = f.files[1:]
	}
}
