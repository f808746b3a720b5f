package helm

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
)

// Charts templates the charts of a repository. For the same input, it templates a chart only once. With a
// nil *Charts, Template returns an error.
type Charts struct {
	offered func() (kubeVersion string, apiVersions []string, err error)
	shared  *sharedCharts
}

// sharedCharts contains the child processes and the results that several Charts share.
type sharedCharts struct {
	program string
	mu      sync.Mutex
	pool    *Pool
	done    map[string]func() (*Rendered, error) // by a hash of the input
}

// NewCharts returns a Charts whose child processes run program, which must call engine.Serve. No process
// starts before the first chart. If program is empty, the processes run the result of [FindProgram].
func NewCharts(program string) *Charts {
	return &Charts{func() (string, []string, error) { return "", nil, nil }, &sharedCharts{program: program, done: map[string]func() (*Rendered, error){}}}
}

// For returns a Charts for a cluster with another Kubernetes version and other APIs. The result shares processes
// and results with c. offered returns this version and these APIs, and is not called before a chart is templated.
func (c *Charts) For(offered func() (kubeVersion string, apiVersions []string, err error)) *Charts {
	if c == nil {
		return nil
	}
	return &Charts{offered, c.shared}
}

// Template is like [Pool.Template]. If opt has no Kubernetes version, it uses the version of c. It adds the
// APIs in opt to the APIs of c.
func (c *Charts) Template(files map[string][]byte, opt Options) (*Rendered, error) {
	if c == nil {
		return nil, errors.New("no program to render it")
	}
	version, apis, err := c.offered()
	if err != nil {
		return nil, err
	}
	opt.KubeVersion = cmp.Or(opt.KubeVersion, version)
	opt.APIVersions = slices.Concat(apis, opt.APIVersions)
	settings, err := json.Marshal(opt)
	if err != nil {
		return nil, fmt.Errorf("encoding values: %w", err)
	}
	hash := sha256.New()
	fmt.Fprintf(hash, "%d %s", len(settings), settings)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(hash, "%q %d ", name, len(files[name]))
		_, _ = hash.Write(files[name])
	}
	key := string(hash.Sum(nil))
	s := c.shared
	s.mu.Lock()
	run, known := s.done[key]
	if !known {
		run = sync.OnceValues(func() (*Rendered, error) { return s.template(files, opt) })
		s.done[key] = run
	}
	s.mu.Unlock()
	return run()
}

func (s *sharedCharts) template(files map[string][]byte, opt Options) (*Rendered, error) {
	pool, err := s.processes()
	if err != nil {
		return nil, err
	}
	return pool.Template(context.Background(), files, opt)
}

func (s *sharedCharts) processes() (*Pool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pool != nil {
		return s.pool, nil
	}
	if s.program == "" {
		program, err := FindProgram()
		if err != nil {
			return nil, err
		}
		s.program = program
	}
	s.pool = NewPool(s.program)
	return s.pool, nil
}

// Close ends the processes. Later calls of Template start new processes.
func (c *Charts) Close() {
	if c == nil {
		return
	}
	c.shared.mu.Lock()
	defer c.shared.mu.Unlock()
	if c.shared.pool != nil {
		c.shared.pool.Close()
	}
}

// ReadRepositoryChart is like [ReadDirectory] for a chart in a directory of a repository. Like 'helm
// dependency build', it adds the subcharts in other directories to which Chart.yaml refers by file://. dirs
// maps the path of each such subchart in the chart to its directory in the repository. Together with an
// error, ReadRepositoryChart returns the files that it has read.
func ReadRepositoryChart(repo fs.FS, dir string) (files map[string][]byte, dirs map[string]string, err error) {
	files, dirs = map[string][]byte{}, map[string]string{}
	return files, dirs, addChartDir(repo, dir, "", files, dirs, 0)
}

// maxSubcharts is the maximum depth of subcharts in other directories.
const maxSubcharts = 5

func addChartDir(repo fs.FS, dir, prefix string, files map[string][]byte, dirs map[string]string, depth int) error {
	sub, err := fs.Sub(repo, dir)
	if err != nil {
		return err
	}
	own, err := ReadDirectory(sub)
	if err != nil {
		return err
	}
	for name, data := range own {
		files[path.Join(prefix, name)] = data
	}
	meta, err := ReadMetadata(own)
	if err != nil {
		return err
	}
	for _, d := range meta.Dependencies {
		local, is := strings.CutPrefix(d.Repository, "file://")
		if _, vendored := own["charts/"+d.Name+"/"+metadataFile]; !is || vendored || depth >= maxSubcharts {
			continue
		}
		from := path.Join(dir, local)
		if !fs.ValidPath(from) {
			return fmt.Errorf("dependency %q is outside of the repository", d.Name)
		}
		at := path.Join(prefix, "charts", d.Name)
		if err := addChartDir(repo, from, at, files, dirs, depth+1); err != nil {
			return fmt.Errorf("dependency %q: %w", d.Name, err)
		}
		dirs[at] = from
	}
	return nil
}
