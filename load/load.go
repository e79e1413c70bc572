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
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	_ "google.golang.org/protobuf/types/known/fieldmaskpb" // and its own types too

	"xdspub/diag"
	"xdspub/safefile"
	"xdspub/xds"
	_ "xdspub/xds/alltypes" // any @type must be decodable
)

// Options for New.
type Options struct {
	// Ignore holds glob patterns (path.Match) of files and folders that are not
	// resources. A pattern with a slash is matched against the path below the
	// root, one without against the base name.
	Ignore []string
	// Allow names folders outside the tree that links and relative names in it may
	// lead to.
	Allow []string
}

// Loader reads source trees. It keeps what it read: a file whose bytes did not
// change gives the same *xds.Resource values again. Not for concurrent use.
type Loader struct {
	options Options
	known   map[string]*file
	// Limits of a tree.
	bytes    int64
	names    int // of files and folders
	findings int
	held     int64 // resources
}

// New makes a Loader.
func New(o Options) *Loader {
	return &Loader{options: o, bytes: MaxTotal, names: MaxNames, findings: MaxTreeFindings, held: MaxResources}
}

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
	// Bytes is the size of what was read.
	Bytes int64

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
	source    *source
	resources []*xds.Resource
	findings  diag.Bounded
	inlined   []inlined
	// envelopes are its DiscoveryResponses without their resources.
	envelopes []*discoveryv3.DiscoveryResponse
	// saysNone tells that the list of its resources is there, and empty.
	saysNone bool
	// bootstrap is a Bootstrap without its static resources.
	bootstrap *xds.Resource
	unread    bool // findings say why
	// partial tells that a resource in it could not be read at all.
	partial bool
}

func newFile(s *source) *file { return &file{source: s, findings: diag.NewBounded(MaxFindings)} }

func (f *file) diagnostics() diag.List {
	return f.findings.List(diag.Position{File: f.source.name}, "in this file")
}

// giveUp notes that what is left of the file is not read, for its many errors.
func (f *file) giveUp() {
	f.findings.Leave(diag.Error)
	f.partial = true
}

// upToDate tells whether the files that went into resources are what they were.
func (f *file) upToDate(t *tree) bool {
	return !slices.ContainsFunc(f.inlined, func(i inlined) bool { return !i.same(t) })
}

// Load reads the tree at root, or the one file at root. An error means that
// something could not be read, or that ctx has ended; what was read and is wrong is
// in Diagnostics.
func (l *Loader) Load(ctx context.Context, root string) (*Result, error) {
	t, single, err := l.open(root)
	if err != nil {
		return nil, err
	}
	t.most = l.bytes
	defer t.close()
	found := []entry{{root, formatOf(root)}}
	if !single {
		if found, err = l.find(ctx, t); err != nil {
			return nil, err
		}
	}
	result := &Result{sources: make(map[string]*source, len(found))}
	files := make([]*file, len(found))
	errs := make([]error, len(found))
	read := inParallel(len(found), l.findings, func(i int) (errors int) {
		if errs[i] = ctx.Err(); errs[i] == nil {
			files[i], errs[i] = l.read(t, found[i], single)
		}
		if errs[i] != nil {
			return 0
		}
		return files[i].diagnostics().Count(diag.Error)
	})
	known := make(map[string]*file, len(found))
	findings := diag.NewBounded(l.findings)
	if result.Partial = read < len(found); result.Partial {
		findings.Leave(diag.Error)
	}
	for i, f := range files[:read] {
		if errs[i] != nil {
			return nil, errs[i]
		}
		known[found[i].path] = f
		result.sources[f.source.name] = f.source
		result.Resources = append(result.Resources, f.resources...)
		findings.Add(f.diagnostics()...)
		result.Partial = result.Partial || f.partial
		for _, in := range f.inlined {
			result.Inlined = append(result.Inlined, in.path)
		}
		if found[i].format != formatOther {
			result.Files = append(result.Files, f.source.name)
		}
	}
	result.Bytes = t.bytes.Load()
	slices.Sort(result.Inlined)
	result.Inlined = slices.Compact(result.Inlined)
	l.known = known
	result.Diagnostics = findings.List(diag.Position{File: root}, "in the source tree").Sort()
	return result, nil
}

// open opens the tree at root, or the folder of the single file at root.
func (l *Loader) open(root string) (t *tree, single bool, err error) {
	info, err := os.Stat(root)
	if err != nil {
		return nil, false, err
	}
	dir := root
	if single = !info.IsDir(); single {
		dir = filepath.Dir(root)
	}
	t, err = openTree(dir, l.options.Allow)
	return t, single, err
}

// read reads one file, or takes what is known of it where its bytes are the same.
// The single file that somebody names by itself may be anywhere.
func (l *Loader) read(t *tree, e entry, single bool) (*file, error) {
	switch e.format {
	case formatOther:
		return newSource(e.path, formatOther, t.peek(e.path)).decode(t), nil
	case formatOutside:
		_, _, err := t.locate(e.path)
		return unread(newSource(e.path, e.format, nil), cmp.Or(err, errTurned))
	}
	read := t.read
	if single {
		read = safefile.Read
	}
	data, err := read(e.path, MaxBytes)
	if err != nil {
		return unread(newSource(e.path, e.format, nil), err)
	}
	t.take(len(data))
	s := newSource(e.path, e.format, data)
	f, ok := l.known[e.path]
	if ok && !f.unread && bytes.Equal(f.source.data, s.data) && f.upToDate(t) {
		for _, in := range f.inlined {
			t.take(len(in.data))
		}
	} else if !t.full() {
		f = s.decode(t)
	}
	if t.full() {
		return nil, fmt.Errorf("read %s: the files of the source tree, and those that resources name as often as they do, have more than %d bytes together: publish parts of it apart, or keep in it what belongs to Envoy", t.root, t.most)
	}
	if t.resources.Add(int64(len(f.resources))) > l.held {
		return nil, fmt.Errorf("read %s: the source tree has more than %d resources: publish parts of it apart", t.root, l.held)
	}
	return f, nil
}

var errTurned = errors.New("a link of the source tree was turned while it was read")

// unread is what is known of a file that is not read on account of what it is; other
// errors are those of reading.
func unread(s *source, err error) (*file, error) {
	d := diag.Diagnostic{Code: codeTooLarge.Name, Position: diag.Position{File: s.name}}
	if large, ok := errors.AsType[*safefile.TooLargeError](err); ok {
		d.Message, d.Help = large.Error(), "split it: a tree may have many files"
	} else if outside, ok := errors.AsType[*OutsideError](err); ok {
		d.Code, d.Message, d.Help = codeOutside.Name, outside.Error(), outsideHelp
	} else {
		return nil, err
	}
	f := newFile(s)
	f.unread, f.partial = true, true
	f.findings.Add(d)
	return f, nil
}

// inParallel calls f, which says how many errors it met, for 0 … n-1 on as many
// goroutines as there are cores, until there are most errors. It returns how many of the
// first calls led to that; what others made is to be left out, so that the result does not
// depend on who was faster.
func inParallel(n, most int, f func(i int) (errors int)) (count int) {
	var (
		mu    sync.Mutex
		met   = make(map[int]int) // errors of the calls that are done and not counted
		total int
		wg    sync.WaitGroup
		next  = make(chan int)
	)
	done := func(i, errors int) {
		mu.Lock()
		defer mu.Unlock()
		met[i] = errors
		for errors, ok := met[count]; ok && total < most; errors, ok = met[count] {
			delete(met, count)
			total += errors
			count++
		}
	}
	enough := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return total >= most
	}
	for range min(runtime.GOMAXPROCS(0), n) {
		wg.Go(func() {
			for i := range next {
				done(i, f(i))
			}
		})
	}
	for i := 0; i < n && !enough(); i++ {
		next <- i
	}
	close(next)
	wg.Wait()
	return count
}
