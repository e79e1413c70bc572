// Package load turns a source tree into messages and remembers where each field
// stands. It is strict where Envoy is lax: what Envoy would drop or read
// otherwise than its author meant is an error with a place.
//
// Values are read by sigs.k8s.io/yaml, whose YAML 1.1 booleans are Envoy's too,
// and by protojson. Positions cost nothing until a finding asks for one: only
// then is the source parsed again, by a parser that keeps lines and columns.
//
//	loader := load.New(load.Options{})
//	result, err := loader.Load(ctx, "config/") // err: can't be read; findings: result.Diagnostics
package load

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	_ "google.golang.org/protobuf/types/known/fieldmaskpb" // and its own types too

	"xdspub/diag"
	"xdspub/xds"
	_ "xdspub/xds/alltypes" // any @type must be decodable
)

// Options for New.
type Options struct {
	// Ignore holds glob patterns (path.Match) of files and folders that are not
	// resources. A pattern with a slash is matched against the path below the
	// root, one without against the base name.
	Ignore []string
}

// Loader reads source trees. It keeps what it read: a file whose bytes did not
// change gives the same *xds.Resource values again. Not for concurrent use.
type Loader struct {
	options Options
	known   map[string]*file
}

// New makes a Loader.
func New(o Options) *Loader { return &Loader{options: o} }

// Result is what a source tree holds.
type Result struct {
	// Resources stand in the order of their files, and of their places in a file.
	Resources []*xds.Resource
	// Diagnostics are the findings of reading and decoding, sorted.
	Diagnostics diag.List
	// Partial tells that there are resources beside these that could not be read at all.
	// Of one that could be read in part, Lost says what it lacks.
	Partial bool
	// SaysNone tells that a file says in so many words that it holds no resource,
	// such as resources: []; for Subscribed.
	SaysNone bool
	// Files are the resource files that were read, sorted.
	Files []string
	// Inlined are the files that resources name by a relative path, sorted: they
	// went into the resources.
	Inlined []string

	sources map[string]*source
}

// Line is the source line at a position, without its line break. It gives none
// that may hold a secret.
func (r *Result) Line(p diag.Position) (string, bool) {
	s, ok := r.sources[p.File]
	if !ok {
		return "", false
	}
	return s.shown(p.Line)
}

// file is what one file held when it was read last.
type file struct {
	source      *source
	resources   []*xds.Resource
	diagnostics diag.List
	inlined     []inlined
	// envelopes are its DiscoveryResponses without their resources.
	envelopes []*discoveryv3.DiscoveryResponse
	// saysNone tells that the list of its resources is there, and empty.
	saysNone bool
	// bootstrap is a Bootstrap without its static resources.
	bootstrap *xds.Resource
	tooLarge  bool // to be read at all
	// partial tells that a resource in it could not be read at all.
	partial bool
}

// upToDate tells whether the files that went into resources are what they were.
func (f *file) upToDate() bool {
	return !slices.ContainsFunc(f.inlined, func(i inlined) bool { return !i.same() })
}

// MaxBytes bounds a file, and what its aliases expand to.
const MaxBytes = 128 << 20

// Load reads the tree at root, or the one file at root. An error means that
// something could not be read, or that ctx has ended; what was read and is wrong is
// in Diagnostics.
func (l *Loader) Load(ctx context.Context, root string) (*Result, error) {
	found, err := l.find(ctx, root)
	if err != nil {
		return nil, err
	}
	result := &Result{sources: make(map[string]*source, len(found))}
	files := make([]*file, len(found))
	errs := make([]error, len(found))
	parallel(len(found), func(i int) {
		if errs[i] = ctx.Err(); errs[i] == nil {
			files[i], errs[i] = l.read(found[i])
		}
	})
	known := make(map[string]*file, len(found))
	for i, f := range files {
		if errs[i] != nil {
			return nil, errs[i]
		}
		known[found[i].path] = f
		result.sources[f.source.name] = f.source
		result.Resources = append(result.Resources, f.resources...)
		result.Diagnostics = append(result.Diagnostics, f.diagnostics...)
		result.Partial = result.Partial || f.partial
		for _, in := range f.inlined {
			result.Inlined = append(result.Inlined, in.path)
		}
		if found[i].format != formatOther {
			result.Files = append(result.Files, f.source.name)
		}
	}
	slices.Sort(result.Inlined)
	result.Inlined = slices.Compact(result.Inlined)
	l.known = known
	result.Diagnostics = result.Diagnostics.Sort()
	return result, nil
}

// read reads one file, or takes what is known of it where its bytes are the same.
func (l *Loader) read(e entry) (*file, error) {
	if e.format == formatOther {
		return peek(e.path).decode(), nil
	}
	info, err := os.Stat(e.path)
	if err != nil {
		return nil, err
	}
	if info.Size() > MaxBytes {
		s := newSource(e.path, e.format, nil)
		f := &file{source: s, tooLarge: true, partial: true}
		f.diagnostics = diag.List{s.finding(codeTooLarge, diag.Position{File: s.name}, fmt.Sprintf("the file has %d bytes, the limit is %d", info.Size(), MaxBytes), "")}
		return f, nil
	}
	s, err := readSource(e.path, e.format)
	if err != nil {
		return nil, err
	}
	if old, ok := l.known[e.path]; ok && !old.tooLarge && bytes.Equal(old.source.data, s.data) && old.upToDate() {
		return old, nil
	}
	return s.decode(), nil
}

// readSource reads a file that must be a regular one: a pipe has no end.
func readSource(path string, f format) (*source, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() && !info.IsDir() {
		return nil, fmt.Errorf("read %s: not a regular file", path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return newSource(path, f, data), nil
}

// peek reads the beginning of a file that is looked at only. What can't be read
// is no resource file.
func peek(path string) *source {
	const most = 4 << 10
	f, err := os.Open(path)
	if err != nil {
		return newSource(path, formatOther, nil)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		data = nil
	}
	return newSource(path, formatOther, data)
}

// parallel calls f for 0 … n-1 on as many goroutines as there are cores.
func parallel(n int, f func(int)) {
	workers := min(runtime.GOMAXPROCS(0), n)
	var wg sync.WaitGroup
	next := make(chan int)
	for range workers {
		wg.Go(func() {
			for i := range next {
				f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}

// entry is a file of the tree that Load looks into.
type entry struct {
	path   string
	format format
}

type format int

const (
	formatOther format = iota // only looked at: does it look like xDS?
	formatYAML
	formatJSON
	formatText
	formatBinary
)

func formatOf(path string) format {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".yaml", ".yml":
		return formatYAML
	case ".json":
		return formatJSON
	case ".pb_text", ".txtpb", ".textproto":
		return formatText
	case ".pb":
		return formatBinary
	default:
		return formatOther
	}
}

// find lists the files of the tree in the order of their paths.
func (l *Loader) find(ctx context.Context, root string) ([]entry, error) {
	info, err := os.Stat(root)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []entry{{root, formatOf(root)}}, nil
	}
	var found []entry
	if err := l.findIn(ctx, root, "", make(map[string]string), &found); err != nil {
		return nil, err
	}
	// A folder's files stand behind files beside it: "a.yaml" < "a/b.yaml".
	slices.SortFunc(found, func(a, b entry) int { return strings.Compare(a.path, b.path) })
	return found, nil
}

// findIn goes through one folder. rel is its path below root, seen the folders
// so far by their real paths: what two links lead to would be read twice, a link
// that leads back without an end.
func (l *Loader) findIn(ctx context.Context, root, rel string, seen map[string]string, found *[]entry) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	dir := filepath.Join(root, rel)
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	first, twice := seen[real]
	switch {
	case twice && strings.HasPrefix(dir, first+string(filepath.Separator)):
		return fmt.Errorf("read %s: the link leads back to %s", dir, real)
	case twice:
		return fmt.Errorf("read %s: the link leads to %s, which is read as %s already", dir, real, first)
	}
	seen[real] = dir
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		below := filepath.Join(rel, e.Name())
		if Hidden(e.Name()) || l.ignored(below) {
			continue
		}
		path := filepath.Join(root, below)
		isDir := e.IsDir()
		if e.Type()&fs.ModeSymlink != 0 {
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			isDir = info.IsDir()
		}
		if isDir {
			if err := l.findIn(ctx, root, below, seen, found); err != nil {
				return err
			}
			continue
		}
		if f := formatOf(path); f != formatOther || mayBeMistaken(path) {
			*found = append(*found, entry{path, f})
		}
	}
	return nil
}

// configName is the project's own file at the root of a tree.
const configName = "xdspub.yaml"

// Hidden tells whether a file or folder of that base name is never a resource:
// hidden ones, editors' leavings, and the project's own file.
func Hidden(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasSuffix(name, "~") || strings.HasSuffix(name, ".swp") ||
		strings.HasPrefix(name, "#") && strings.HasSuffix(name, "#") ||
		name == "4913" || name == configName
}

func (l *Loader) ignored(below string) bool {
	below = filepath.ToSlash(below)
	for _, pattern := range l.options.Ignore {
		name := below
		if !strings.Contains(pattern, "/") {
			name = filepath.Base(below)
		}
		if ok, _ := filepath.Match(strings.Trim(pattern, "/"), name); ok {
			return true
		}
	}
	return false
}

// mayBeMistaken tells whether a file of another suffix is worth a look: it could
// be a resource file that its author misnamed. Prose quotes resources often.
func mayBeMistaken(path string) bool {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".md", ".rst", ".html", ".go", ".py", ".sh":
		return false
	}
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
