// Package load reads the files of a source tree, follows their links, and keeps the content: if a file changes, only
// that file is read again. Package decode turns each file into resources and findings.
//
//	loader := load.New(load.Options{})
//	result, err := loader.Load(ctx, "config/") // err: can't be read; findings: result.Diagnostics
package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	_ "google.golang.org/protobuf/types/known/fieldmaskpb" // and its own types too

	"xdspub/diag"
	"xdspub/envoy/envoyapi"
	"xdspub/internal/crash"
	"xdspub/internal/parallel"
	"xdspub/internal/safefile"
	"xdspub/source/decode"
	"xdspub/source/owners"
	"xdspub/source/settingsfile"
	"xdspub/source/syntax"
	_ "xdspub/xds/alltypes" // any @type must be decodable
)

// Options for New.
type Options struct {
	// Envoy is the release that gets the resources; nil means the latest known release.
	Envoy *envoyapi.Version
	// Ignore holds glob patterns (path.Match) of files and folders that are not
	// resources. A pattern with a slash is matched against the path below the
	// root, one without against the base name.
	Ignore []string
	// Beside are paths, below the root, of files that are no resources, such as descriptor sets.
	Beside []string
	// Allow names folders outside the tree that links and relative names in it may
	// lead to.
	Allow []string
	// Overlay has texts that replace, or add to, the files at their paths, such as the unsaved text of an
	// editor.
	Overlay map[string][]byte
	// StubSecrets permits missing files of certificates, keys and other secrets on this machine: the resource
	// keeps the name of a missing file.
	StubSecrets bool
	// Owners are patterns of folders below the root that own the resources in them (package owners).
	Owners []string
	// Streams means that clients get the resources by streams alone. A TTL has an effect on streams; in files,
	// Envoy ignores a TTL.
	Streams bool
}

// Loader reads source trees, and caches its reads: an unchanged file gives the same *xds.Resource values
// again, and is not read again if the file system's metadata show that it is unchanged. Not for concurrent
// use.
type Loader struct {
	options Options
	overlay Overlay
	known   contents
	failed  bool // known may be older than Update's paths
	// matched has the patterns of Options.Ignore that left something out since the last Load,
	// unused those that left nothing out then.
	matched map[string]bool
	unused  []UnusedPattern
	now     func() time.Time
	// Limits of a tree.
	bytes    int64
	names    int // of files and folders
	findings int
	held     int64 // resources
}

// New returns a Loader. It reads nothing yet.
func New(o Options) *Loader {
	return &Loader{
		options: o, overlay: NewOverlay(o.Overlay), matched: make(map[string]bool), now: time.Now, bytes: MaxTotal,
		names: MaxNames, findings: MaxTreeFindings, held: MaxResources,
	}
}

// Load reads the tree at root, or the file at root. Diagnostics has the faults of files. The error is not nil
// if something could not be read, or if ctx has ended. If nothing has changed, Load returns the Result of the
// previous call.
func (l *Loader) Load(ctx context.Context, root string) (*Result, error) {
	l.failed = true
	t, single, err := l.open(root)
	if err != nil {
		return nil, err
	}
	defer t.close()
	t.ended = func() bool { return ctx.Err() != nil }
	found, in := []entry{{path: root, format: syntax.FormatOf(root), single: true, beyond: true}}, folders{}
	if single && found[0].format == syntax.Other {
		return nil, noFormat(root)
	}
	l.unused = nil
	if !single {
		clear(l.matched)
		if found, in, err = l.find(ctx, t); err != nil {
			return nil, err
		}
		l.unused = l.unusedIn(root, found, in)
	}
	own, others := apart(found)
	files, err := l.readAll(ctx, t, own)
	if err != nil {
		return nil, err
	}
	w := settingsfile.NewWhens(t.root, foldersOf(files))
	if len(files) == len(own) {
		of, err := l.readFor(ctx, t, others, w)
		if err != nil {
			return nil, err
		}
		files = together(files, of)
	}
	before := l.known
	if before.root != root || before.cut {
		before = contents{root: root}
	}
	before.whens = w
	l.known = before.with(editsBetween(before.files, files), len(files) < len(found), l.findings)
	l.known.folders = in
	l.failed = false
	return l.known.result, nil
}

// Take returns Contents as Load returns a source tree. name is the name of the Remote in findings.
func (l *Loader) Take(name string, c Contents) *Result {
	before := l.known
	if before.root != name {
		before = contents{root: name, whens: settingsfile.NewWhens(name, nil)}
	}
	files := make([]*file, len(c.Files))
	known := before.files
	for i, f := range c.Files {
		known = known[skip(known, f.Source.Name):]
		if len(known) > 0 && known[0].File == f {
			files[i] = known[0]
		} else {
			files[i] = &file{File: f, found: entry{path: f.Source.Name, format: f.Source.Format}}
		}
	}
	l.known = before.with(editsBetween(before.files, files), false, l.findings)
	r := l.known.result
	if !c.Partial && len(c.Findings) == 0 {
		return r
	}
	with := *r
	with.Partial = with.Partial || c.Partial
	with.Diagnostics = append(with.Diagnostics[:len(with.Diagnostics):len(with.Diagnostics)], c.Findings...).Sort()
	return &with
}

// open opens the tree at root, or the folder of the single file at root.
func (l *Loader) open(root string) (t *tree, single bool, err error) {
	isDir, err := l.overlay.isDir(root)
	if err != nil {
		return nil, false, err
	}
	dir := root
	if single = !isDir; single {
		dir = filepath.Dir(root)
	}
	if t, err = openTree(dir, l.options.Allow); err != nil {
		return nil, false, err
	}
	t.most, t.now, t.overlay, t.stubSecrets = l.bytes, l.now, l.overlay, l.options.StubSecrets
	return t, single, nil
}

// apart returns the settings files among entries, and the others.
func apart(found []entry) (settings, others []entry) {
	if !slices.ContainsFunc(found, func(e entry) bool { return e.isSettings }) {
		return nil, found
	}
	for _, e := range found {
		if e.isSettings {
			settings = append(settings, e)
		} else {
			others = append(others, e)
		}
	}
	return settings, others
}

// together puts two lists of files together, each in the order of paths.
func together(settings, others []*file) []*file {
	if len(settings) == 0 {
		return others
	}
	all := slices.Concat(settings, others)
	slices.SortFunc(all, func(a, b *file) int { return strings.Compare(a.Source.Name, b.Source.Name) })
	return all
}

// readFor reads files for the clients that the settings files say.
func (l *Loader) readFor(ctx context.Context, t *tree, found []entry, w *settingsfile.Whens) ([]*file, error) {
	for i := range found {
		found[i].clients = w.Clients(found[i].path)
	}
	return l.readAll(ctx, t, found)
}

// readAll reads the changed files. If the files have too many errors, readAll returns the first files up to
// the limit.
func (l *Loader) readAll(ctx context.Context, t *tree, found []entry) ([]*file, error) {
	known := l.knownOf(found)
	files := make([]*file, len(found))
	if err := l.keep(ctx, t, found, known, files); err != nil {
		return nil, err
	}
	var todo []int
	for i := range found {
		if files[i] == nil {
			todo = append(todo, i)
		}
	}
	errs := make([]error, len(found))
	batches := slices.Collect(slices.Chunk(todo, max(1, min(len(todo)/manyFiles, 32))))
	read := parallel.Run(len(batches), l.findings, func(n int) (errors int) {
		in := &batch{tree: t}
		defer in.close()
		for _, i := range batches[n] {
			if errs[i] = ctx.Err(); errs[i] == nil {
				files[i], errs[i] = l.read(in, found[i], known[i])
				errs[i] = cmp.Or(ctx.Err(), errs[i]) // incomplete if ctx has ended
			}
			if errs[i] == nil {
				errors += files[i].errors()
			}
		}
		return errors
	})
	if read < len(batches) {
		files = files[:batches[read][0]]
	}
	met := 0
	for i, f := range files {
		if errs[i] != nil {
			return nil, errs[i]
		}
		if met += f.errors(); met >= l.findings {
			return files[:i+1], nil
		}
	}
	return files, nil
}

// manyFiles is how many files are worth to be read in batches. Fewer may each be large.
const manyFiles = 64

// knownOf returns the known file of each entry, or nil. Entries and known files are in the order of their
// paths.
func (l *Loader) knownOf(found []entry) []*file {
	known := make([]*file, len(found))
	rest := l.known.files
	for i, e := range found {
		rest = rest[skip(rest, e.path):]
		if len(rest) > 0 && rest[0].found.same(e) {
			known[i] = rest[0]
		}
	}
	return known
}

// skip counts the files before a path. It is fast for a small count.
func skip(files []*file, path string) int {
	most := 1
	for most < len(files) && files[most-1].Source.Name < path {
		most *= 2
	}
	n, _ := searchFile(files[:min(most, len(files))], path)
	return n
}

// keep copies to files the known files that the file system's metadata show to be unchanged.
func (l *Loader) keep(ctx context.Context, t *tree, found []entry, known, files []*file) error {
	const batch = 256
	batches := (len(found) + batch - 1) / batch
	parallel.Run(batches, 1, func(n int) (errors int) {
		for i := n * batch; i < min((n+1)*batch, len(found)) && ctx.Err() == nil; i++ {
			if f := known[i]; f != nil && f.isCurrent(t) {
				files[i] = f
				t.takeFile(f)
			}
		}
		return 0
	})
	return l.overLimit(t)
}

// read reads a file, or returns known if the bytes are equal. A single named file may be anywhere.
func (l *Loader) read(in *batch, e entry, known *file) (*file, error) {
	defer crash.While(func() string { return "reading " + e.path })
	t := in.tree
	var read bytesOf
	var err error
	switch {
	case e.unreadable != nil:
		return l.unread(t, e, e.unreadable)
	case e.isOutside:
		_, _, err := t.locate(e.path)
		return l.unread(t, e, cmp.Or(err, errTurned))
	case e.format == syntax.Other:
		read = t.peek(e.path)
		f := decode.NewSource(e.path, syntax.Other, read.data, decode.SourceOptions{}).Decode(t)
		return &file{File: f, found: e, stamp: read.stamp}, nil
	case e.isSettings:
		read, err = in.read(e.path, maxConfig)
		if _, outside := errors.AsType[*decode.OutsideError](err); outside && t.IsRoot(e.path) {
			err = nil // TreeConfig refuses it, unless somebody trusts it
		}
	case e.single:
		if text, _, ok := l.overlay.text(e.path); ok {
			read.data = text
		} else {
			read.data, err = safefile.Read(e.path, syntax.MaxBytes)
		}
	default:
		read, err = in.read(e.path, syntax.MaxBytes)
	}
	if err != nil {
		return l.unread(t, e, err)
	}
	s := decode.NewSource(e.path, e.format, read.data,
		decode.SourceOptions{
			Envoy: l.options.Envoy, Streams: l.options.Streams, Settings: e.isSettings, Clients: e.clients,
			Owner: l.ownerOf(t, e.path),
		})
	f := known
	if f != nil && !f.unread && f.Source.Holds(s.Data()) && f.upToDate(t) {
		t.takeFile(f)
	} else {
		t.Take(s.Size())
		if t.Full() {
			return nil, l.overLimit(t)
		}
		f = &file{File: s.Decode(t)}
		if err := f.Failure(); err != nil {
			return l.unread(t, e, err)
		}
		t.resources.Add(int64(len(f.Resources)))
	}
	f.found, f.stamp = e, read.stamp
	return f, l.overLimit(t)
}

// overLimit returns the error of a tree above the limits.
func (l *Loader) overLimit(t *tree) error {
	switch {
	case t.Full():
		return fmt.Errorf("read %s: the files of the source tree, and those that resources name as often as they do, have more "+
			"than %d bytes together: publish parts of it apart, or keep in it what belongs to Envoy", t.root, t.most)
	case t.resources.Load() > l.held:
		return fmt.Errorf("read %s: the source tree has more than %d resources: publish parts of it apart", t.root, l.held)
	}
	return nil
}

var errTurned = errors.New("a link of the source tree was turned while it was read")

// ownerOf returns the folder that owns a file of the tree; empty for a shared file.
func (l *Loader) ownerOf(t *tree, path string) string {
	return owners.New(t.root, l.options.Owners).Of(path)
}

// isOfPlace reports whether an error is about one file or folder, and not about the process or the machine, such as too
// many open files.
func isOfPlace(err error) bool {
	return slices.ContainsFunc([]error{fs.ErrPermission, fs.ErrNotExist, syscall.ELOOP, syscall.EIO, syscall.ESTALE},
		func(is error) bool { return errors.Is(err, is) })
}

// unread returns a placeholder, with a finding, for a file that is too large, to which a link leads out of the tree, or
// that can't be read although it is in the folder of an owner. Other errors are returned.
func (l *Loader) unread(t *tree, e entry, err error) (*file, error) {
	d := diag.Diagnostic{Code: syntax.CodeTooLarge.Name, Position: diag.Position{File: e.path}}
	if large, ok := errors.AsType[*safefile.TooLargeError](err); ok {
		d.Message, d.Help = large.Error(), "split it: a tree may have many files"
	} else if outside, ok := errors.AsType[*decode.OutsideError](err); ok {
		d.Code, d.Message, d.Help = decode.CodeOutside.Name, outside.Error(), decode.OutsideHelp
	} else if e.unreadable != nil || l.ownerOf(t, e.path) != "" && isOfPlace(err) {
		d.Code, d.Message, d.Help = decode.CodeUnreadable.Name, err.Error(), "let the user of xdspub read it, or remove it"
	} else {
		return nil, err
	}
	f := &file{File: decode.NewFile(decode.NewSource(e.path, e.format, nil, decode.SourceOptions{Settings: e.isSettings})), found: e, unread: true}
	f.Partial, f.ClientsUnknown = true, e.isSettings
	f.Findings.Add(d)
	return f, nil
}

// Compress compresses the texts of the Loader's files, for an idle time. A text is decompressed when somebody
// asks for a place in it. Compress returns the number of compressed files.
func (l *Loader) Compress() int {
	var compressed atomic.Int64
	cores := runtime.GOMAXPROCS(0)
	parts := slices.Collect(slices.Chunk(l.known.files, len(l.known.files)/cores+1))
	parallel.Run(len(parts), 1, func(n int) (errors int) {
		var p syntax.Compressor
		for _, f := range parts[n] {
			if f.Source.Compress(&p) {
				compressed.Add(1)
			}
		}
		return 0
	})
	return int(compressed.Load())
}

// takeFile counts an unchanged file.
func (t *tree) takeFile(f *file) {
	t.bytes.Add(f.size())
	t.resources.Add(int64(len(f.Resources)))
}
