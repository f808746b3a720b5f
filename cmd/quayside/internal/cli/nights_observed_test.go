package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/health"
	"github.com/quayside/quayside/lockfile"
)

// observations are the observed files of one night.
type observations struct {
	tonight []string        // files about dev, with the time of the test
	held    map[string]bool // operators of dev that these hold back
	refused map[string]bool // operators that report Upgradeable=False, as "environment operator"
}

// clusterFault is the fault of a cluster on one night.
type clusterFault int

const (
	unhealthy   clusterFault = iota // some operators fail
	refusing                        // some operators report Upgradeable=False
	late                            // some operators are not rolled out yet
	old                             // the file is two days old
	unreachable                     // there is no file
	clusterFaults
)

// clock returns the time of this night's job.
func (f *nightFleet) clock() time.Time {
	return time.Date(2025, 1, 1, 3, 0, 0, 0, time.UTC).AddDate(0, 0, f.night)
}

// observe writes the observed file of each cluster for this night.
func (f *nightFleet) observe(calm bool) observations {
	out := observations{held: map[string]bool{}, refused: map[string]bool{}}
	check(f.t, os.RemoveAll(filepath.Join(f.dir, "tonight")))
	for _, env := range rings() {
		lock := f.lockAt("main", env)
		for i := range 2 {
			s := health.Summary{At: f.clock(), Environment: env, Cluster: fmt.Sprintf("%s-%d", env, i+1), ClusterUID: fmt.Sprintf("uid-%s-%d", env, i+1)}
			fault := clusterFault(f.rand.IntN(12))
			switch {
			case calm:
				fault = clusterFaults
			case fault == unreachable:
				continue
			case fault == old:
				s.At = s.At.AddDate(0, 0, -2)
			}
			contradiction := s // a second file of the same time
			for _, pin := range lock.Pins {
				good := goodHealth(pin)
				o := good
				if f.chance(40) {
					o = spoilHealth(o, fault)
				}
				s.Operators = append(s.Operators, o)
				contradiction.Operators = append(contradiction.Operators, []health.OperatorHealth{o, o, good}[f.rand.IntN(3)])
				isBad := o.State != good.State || o.Upgradeable != good.Upgradeable || o.Pin != good.Pin || fault == old
				out.held[pin.Key()] = out.held[pin.Key()] || env == "dev" && isBad
				out.refused[env+" "+pin.Key()] = out.refused[env+" "+pin.Key()] || o.Upgradeable == "False"
			}
			f.save(s, "a")
			f.save(contradiction, "b")
			if env == "dev" {
				s.At = time.Now().Add(s.At.Sub(f.clock()))
				name := "tonight/" + s.Cluster + ".yaml"
				f.put(name, string(health.FormatObserved(s)))
				out.tonight = append(out.tonight, filepath.Join(f.dir, name))
			}
		}
	}
	return out
}

func goodHealth(pin lockfile.Pin) health.OperatorHealth {
	return health.OperatorHealth{
		Namespace: pin.Namespace, Package: pin.Package, Version: pin.Version, Pin: pin.Checksum(), Bundle: pin.BundleDigest(),
		Applied: []string{pin.Version}, State: health.StateReady, Upgradeable: "True",
	}
}

// spoilHealth returns the health of an operator in a cluster with the given fault.
func spoilHealth(o health.OperatorHealth, fault clusterFault) health.OperatorHealth {
	switch fault {
	case unhealthy:
		o.State, o.Message = health.StateFailed, "a pod crashes"
	case refusing:
		o.Upgradeable, o.UpgradeMessage = "False", "migrating"
	case late:
		o.Pin, o.Bundle, o.Applied = catalog.DigestOf([]byte("before")), catalog.DigestOf([]byte("before")), []string{"0.0.1"}
	case old, unreachable, clusterFaults:
	}
	return o
}

// save writes an observed file, and removes the oldest files.
func (f *nightFleet) save(s health.Summary, suffix string) {
	name := fmt.Sprintf("observed/%s-%d-%s.yaml", s.Cluster, f.night, suffix)
	f.put(name, string(health.FormatObserved(s)))
	f.files = append(f.files, name)
	for len(f.files) > 60 {
		check(f.t, os.Remove(filepath.Join(f.dir, f.files[0])))
		f.files = f.files[1:]
	}
}
