// Package pipeline runs the stages in order: load, validate, render, publish. It
// makes the plan of steps, in the order in which Envoy can follow, and holds the
// last accepted Snapshot. What it is told to do it is told by Options; flags,
// events and signals belong to others.
package pipeline

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"xdspub/diag"
	"xdspub/envoy"
	"xdspub/follow"
	"xdspub/load"
	"xdspub/render"
	"xdspub/validate"
	"xdspub/xds"
)

// Options of a Pipeline.
type Options struct {
	// Source is the source tree, or one file.
	Source string
	// Follow says that Source is an Envoy's bootstrap, to be followed as the Envoy
	// would: its static resources, and the files that it subscribes to.
	Follow bool
	// Root is where the relative paths in a followed bootstrap begin.
	Root string
	// Input, where it is set, stands in place of a source tree: one document.
	Input *load.Input
	// Ignore holds glob patterns of files in the tree that are no resources.
	Ignore []string
	// Allow names folders outside the tree that links and relative paths in it may
	// lead into.
	Allow []string
	// AllowEmpty takes a tree without resources as what is wanted.
	AllowEmpty bool
	// Bootstrap is the Envoy's own bootstrap file: what it holds is known. Empty
	// for none.
	Bootstrap string
	// Disable holds the codes of validation rules that are left out.
	Disable []string
	// Enable holds the codes of those that run though they are off by default.
	Enable []string
	// Timings says that Check measures.
	Timings bool

	// Out is the output directory. The fields below are for publishing into it.
	Out string
	// EnvoyPath is Out as Envoy sees it; empty means Out made absolute.
	EnvoyPath string
	// Format of the published files; nil means JSON.
	Format *render.Format
	// Endpoints says where endpoint assignments go.
	Endpoints EndpointsMode
	// InotifyBudget is how many path subscriptions Envoy can hold.
	InotifyBudget int
	// StepGap is waited between two steps of a plan that both moved something.
	StepGap time.Duration
	// TrimDelay is how long a cluster that nothing needs any more stays, for
	// connections that are kept alive on a draining listener.
	TrimDelay time.Duration
	// Clock notices when somebody sets the clock; nil for a run that is short.
	Clock *Clock
	// Envoys confirm what is published; nil where none is asked.
	Envoys *envoy.Fleet
	// Log is told what goes on; nil discards.
	Log *slog.Logger
}

// EndpointsMode is a value of --eds.
type EndpointsMode string

const (
	// EndpointsAuto starts with files, and goes inline once and for all when the
	// inotify budget is used up.
	EndpointsAuto EndpointsMode = "auto"
	// EndpointsFile gives each EDS cluster a file of its own.
	EndpointsFile EndpointsMode = "file"
	// EndpointsInline puts the endpoints into the clusters.
	EndpointsInline EndpointsMode = "inline"
)

// Pipeline turns one source tree into one output directory, again and again.
// Not for concurrent use.
type Pipeline struct {
	options  Options
	log      *slog.Logger
	loader   *load.Loader
	judge    *validate.Judge
	renderer render.Renderer
	// readOut are the published files that were read back, by path.
	readOut map[string]readOut
	// rendered are files that were rendered last, by path: once they are published they
	// need not be read back.
	rendered map[string]readOut
	// republish are published files that move once more with the next plan.
	republish []string
}

// New makes a Pipeline.
func New(o Options) *Pipeline {
	o.Format = cmp.Or(o.Format, render.JSON)
	p := &Pipeline{options: o, log: o.Log, loader: load.New(load.Options{Ignore: o.Ignore, Allow: o.Allow}), judge: validate.NewJudge(validate.Rules), readOut: make(map[string]readOut), rendered: make(map[string]readOut)}
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	return p
}

// SetOut says where the output directory is, once it is open: a link on the path that was
// given may come to lead elsewhere.
func (p *Pipeline) SetOut(out string) { p.options.Out = out }

// Checked is a source tree that was loaded and judged.
type Checked struct {
	Snapshot    *xds.Snapshot
	Diagnostics diag.List
	Summary     diag.Summary
	// Line is the source line at a position.
	Line func(diag.Position) (string, bool)
	// Inlined are the files that resources name by a relative path: they went into
	// the resources.
	Inlined []string
	// Timings are set where Options ask for them.
	Timings *Timings
}

// Timings say where the time of a Check went.
type Timings struct {
	// Load is the time of reading and decoding.
	Load time.Duration
	// Rules are the times of the rules, over all cores.
	Rules validate.Timings
}

// Accepted tells whether the Snapshot has no error.
func (c *Checked) Accepted() bool { return !c.Diagnostics.HasErrors() }

// Invalid tells whether the findings forbid to publish the Snapshot: errors, or where that
// is asked for warnings as well.
func (c *Checked) Invalid(warningsAsErrors bool) bool {
	return !c.Accepted() || warningsAsErrors && c.Summary.Warnings > 0
}

// Add takes further findings in, such as those of Plan.
func (c *Checked) Add(list diag.List) {
	c.Diagnostics = append(c.Diagnostics, list...).Sort()
	c.Summary.Errors, c.Summary.Warnings = c.Diagnostics.Count(diag.Error), c.Diagnostics.Count(diag.Warning)
}

// Merge takes the findings of another tree in. The Snapshots stay apart.
func (c *Checked) Merge(other *Checked) {
	mine := c.Line
	c.Line = func(p diag.Position) (string, bool) {
		if line, ok := mine(p); ok {
			return line, ok
		}
		return other.Line(p)
	}
	if c.Timings != nil && other.Timings != nil {
		c.Timings.Load += other.Timings.Load
		c.Timings.Rules.Add(&other.Timings.Rules)
	}
	c.Summary.Files += other.Summary.Files
	c.Summary.Resources += other.Summary.Resources
	c.Add(other.Diagnostics)
}

// Check loads the source tree and judges it. An error means that something could
// not be read, or that ctx has ended; what was read and is wrong is in Diagnostics.
func (p *Pipeline) Check(ctx context.Context) (*Checked, error) {
	checked, err := p.check(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err() // what it came to is not all
	}
	if err == nil && !p.options.Follow {
		checked.Add(p.takenAsResources(checked.Diagnostics))
	}
	return checked, err
}

func (p *Pipeline) check(ctx context.Context) (*Checked, error) {
	if p.options.Follow {
		return p.follow(ctx)
	}
	if c := p.Overlap(); c != nil {
		return c, nil
	}
	known, knownDiagnostics, err := p.known()
	if err != nil {
		return nil, err
	}
	start := time.Now()
	loaded, err := p.load(ctx)
	if err != nil {
		return nil, err
	}
	c := &Checked{Snapshot: loaded.Snapshot(), Line: loaded.Line, Inlined: loaded.Inlined}
	c.loaded(start, p.options)
	c.Summary.Files, c.Summary.Resources = len(loaded.Files()), c.Snapshot.Len()
	c.Add(knownDiagnostics)
	c.Add(loaded.Diagnostics)
	c.Add(p.linksToOut(loaded.Files()))
	if c.Snapshot.Len() == 0 && c.Accepted() && !p.options.AllowEmpty {
		c.Add(diag.List{{
			Code: codeEmptyTree.Name, Position: diag.Position{File: p.options.Source},
			Message: "the source tree holds no resource; published, it would remove everything from Envoy",
			Help:    "check the path; where nothing is what you want, use --allow-empty",
		}})
		return c, nil
	}
	c.Add(p.judge.Run(ctx, c.Snapshot, validate.Options{
		Known:   known,
		Disable: p.options.Disable,
		Enable:  p.options.Enable,
		Now:     time.Now(),
		// A resource that could not be read is missing here and not in the tree.
		Partial: loaded.Partial,
		Timings: c.rules(),
	}))
	return c, nil
}

// loaded notes how long loading took, if that is asked for.
func (c *Checked) loaded(start time.Time, o Options) {
	if o.Timings {
		c.Timings = &Timings{Load: time.Since(start)}
	}
}

// rules is where the times of the rules go.
func (c *Checked) rules() *validate.Timings {
	if c.Timings == nil {
		return nil
	}
	return &c.Timings.Rules
}

// follow is Check for a bootstrap.
func (p *Pipeline) follow(ctx context.Context) (*Checked, error) {
	start := time.Now()
	followed, err := follow.Bootstrap(ctx, p.options.Source, follow.Options{Root: p.options.Root, Disable: p.options.Disable})
	if err != nil {
		return nil, err
	}
	c := &Checked{Snapshot: followed.Snapshot, Line: followed.Line, Inlined: followed.Data}
	c.loaded(start, p.options)
	c.Summary.Files, c.Summary.Resources = len(followed.Files), c.Snapshot.Len()
	c.Add(followed.Diagnostics)
	c.Add(validate.Run(ctx, c.Snapshot, validate.Rules, validate.Options{
		Known:     followed.Known,
		Bootstrap: followed.Bootstrap,
		Disable:   p.options.Disable,
		Enable:    p.options.Enable,
		Partial:   followed.Partial,
		Timings:   c.rules(),
	}))
	c.Add(p.takenAsBootstrap(followed.Bootstrap, c.Snapshot.Len(), followed.Diagnostics))
	return c, nil
}

func (p *Pipeline) load(ctx context.Context) (*load.Result, error) {
	if p.options.Input != nil {
		return load.Parse(*p.options.Input), nil
	}
	return p.loader.Load(ctx, p.options.Source)
}

// known reads the Envoy's bootstrap, where one is given.
func (p *Pipeline) known() (xds.BootstrapFacts, diag.List, error) {
	if p.options.Bootstrap == "" {
		return xds.BootstrapFacts{}, nil, nil
	}
	b, list, err := load.Bootstrap(p.options.Bootstrap)
	if err != nil || list.HasErrors() {
		return xds.BootstrapFacts{}, list, err
	}
	return xds.BootstrapFactsOf(b), list, nil
}

// Overlap finds an output directory inside the source tree, or the reverse: what
// is published would be read as a source again. It is nil where the two are apart.
// Check begins with it; before that, nothing must be written into Out.
func (p *Pipeline) Overlap() *Checked {
	if p.options.Out == "" {
		return nil
	}
	source, out := resolved(p.options.Source), resolved(p.options.Out)
	for _, c := range []struct{ inner, outer, message string }{
		{out, source, "the output directory %s lies inside the source tree %s"},
		{source, out, "the source tree %[2]s lies inside the output directory %[1]s"},
	} {
		if within(c.inner, c.outer) {
			checked := &Checked{Snapshot: xds.NewSnapshot(nil), Line: func(diag.Position) (string, bool) { return "", false }}
			checked.Add(diag.List{{
				Code: codeOutputInSource.Name, Position: diag.Position{File: p.options.Out},
				Message: fmt.Sprintf(c.message, p.options.Out, p.options.Source),
				Help:    "keep the two apart: side by side, or on different volumes",
			}})
			return checked
		}
	}
	return nil
}

// linksToOut finds source files that a link in the tree borrows from the output
// directory.
func (p *Pipeline) linksToOut(files []string) diag.List {
	if p.options.Out == "" {
		return nil
	}
	out := resolved(p.options.Out)
	folders := make(map[string]string)
	var list diag.List
	for _, f := range files {
		dir := filepath.Dir(f)
		if _, ok := folders[dir]; !ok {
			folders[dir] = resolved(dir)
		}
		real := filepath.Join(folders[dir], filepath.Base(f))
		if info, err := os.Lstat(f); err == nil && info.Mode()&os.ModeSymlink != 0 {
			real = resolved(f)
		}
		if within(real, out) {
			list = append(list, diag.Diagnostic{
				Code: codeOutputInSource.Name, Position: diag.Position{File: f},
				Message: fmt.Sprintf("a link of the source tree leads to %s, in the output directory %s", real, p.options.Out),
				Help:    "remove the link, or name it in ignore: of xdspub.yaml",
			})
		}
	}
	return list
}

// within tells whether path is dir or below it.
func within(path, dir string) bool {
	const separator = string(filepath.Separator)
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, separator)+separator)
}

// resolved is a path as the file system knows it, as far as it exists.
func resolved(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	rest := ""
	for dir := abs; ; dir = filepath.Dir(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		if _, err := os.Lstat(dir); err == nil || dir == filepath.Dir(dir) {
			return abs
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}
