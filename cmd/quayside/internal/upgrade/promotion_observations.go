package upgrade

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/health"
	"github.com/quayside/quayside/internal/yamlnode"
)

// Limits for a directory of observations.
const (
	maxFiles = 50_000
	maxDepth = 8
)

// ReadObservations reads one file of observations, or all .json, .yaml and .yml files below a directory. If a
// file does not name its cluster, ReadObservations gets cluster and environment from the path (see
// splitFileName). It returns a warning for each unknown cluster. The error has the faults of all files.
func (es Environments) ReadObservations(f source.File) ([]*health.Summary, []diag.Warning, error) {
	if f.Name != "" {
		return es.readFile(f)
	}
	var out []*health.Summary
	var warnings []diag.Warning
	var faults diag.List
	files := 0
	err := fs.WalkDir(f.FS, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || strings.Count(name, "/") >= maxDepth):
			return fs.SkipDir
		case d.IsDir() || strings.HasSuffix(name, workspace.SignatureSuffix) || !yamlnode.HasExtension(name):
			return nil
		}
		if files++; files > maxFiles {
			return fmt.Errorf("%s: more than %d files", f.DisplayPath, maxFiles)
		}
		seen, ws, err := es.readFile(source.File{FS: f.FS, Name: name, DisplayPath: path.Join(f.DisplayPath, name)})
		faults.Add(diag.Pos{}, err)
		out, warnings = append(out, seen...), append(warnings, ws...)
		return nil
	})
	if err == nil && files == 0 {
		err = fmt.Errorf("%s: contains no .json, .yaml or .yml file", f.DisplayPath)
	}
	faults.Add(diag.Pos{}, err)
	return out, warnings, faults.Err()
}

func (es Environments) readFile(f source.File) ([]*health.Summary, []diag.Warning, error) {
	seen, err := workspace.ReadObserved(f)
	if err != nil {
		return nil, nil, err
	}
	environment, cluster := es.splitFileName(f.DisplayPath)
	var warnings []diag.Warning
	for _, s := range seen {
		if s.Cluster == "" {
			s.Environment, s.Cluster = cmp.Or(s.Environment, environment, es.environmentWith(cluster)), cluster
		}
		if es.hasCluster(s.Environment, s.Cluster) || len(s.Operators) == 0 {
			continue
		}
		of := "any environment"
		if s.Environment != "" {
			of = "environment " + s.Environment
		}
		warnings = append(warnings, diag.Warning{Pos: diag.Pos{File: f.DisplayPath}, Code: "unknown-cluster", Subject: s.Cluster, Msg: fmt.Sprintf("%q is not a cluster of %s: its observations do not count", s.Cluster, of)})
	}
	for _, e := range es {
		warnings = e.Waive(warnings)
	}
	return seen, warnings, nil
}

// splitFileName returns the environment and the cluster in the path of a file, such as
// "<environment>/<cluster>.json" or "<environment>/<cluster>/<any>.json". If the path has no known environment,
// it returns "" for the environment.
func (es Environments) splitFileName(file string) (environment, cluster string) {
	parts := strings.Split(path.Clean(file), "/")
	last := len(parts) - 1
	parts[last] = strings.TrimSuffix(parts[last], path.Ext(parts[last]))
	if last > 0 && !es.hasCluster("", parts[last]) && es.hasCluster("", parts[last-1]) {
		last--
	}
	if last > 0 && slices.ContainsFunc(es, func(e *Environment) bool { return e.Title == parts[last-1] }) {
		environment = parts[last-1]
	}
	return environment, parts[last]
}

// environmentWith returns the title of the only environment with this cluster. It returns "" if no environment
// or several environments have the cluster.
func (es Environments) environmentWith(cluster string) string {
	title := ""
	for _, e := range es {
		if (Environments{e}).hasCluster("", cluster) {
			if title != "" {
				return ""
			}
			title = e.Title
		}
	}
	return title
}

// hasCluster reports whether an environment has a cluster. If environment is empty, it looks in all
// environments.
func (es Environments) hasCluster(environment, cluster string) bool {
	return slices.ContainsFunc(es, func(e *Environment) bool {
		return (environment == "" || e.Title == environment) && slices.Contains(e.Settings.ClusterNames(), cluster)
	})
}
