// Package pipeline runs the stages in order: load, validate, render, publish. It plans the
// steps in the order that Envoy needs. Options say what to do; flags, events and signals
// belong to other packages.
package pipeline

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"xdspub/diag"
	"xdspub/envoy"
	"xdspub/envoyapi"
	"xdspub/follow"
	"xdspub/internal/fspath"
	"xdspub/load"
	"xdspub/publish"
	"xdspub/render"
	"xdspub/validate"
	"xdspub/validate/rules"
	"xdspub/xds"
)

// Options of a Pipeline.
type Options struct {
	// Source is the source tree, or one file.
	Source string
	// Follow means that Source is an Envoy's bootstrap: Check reads its static resources,
	// and the files that it subscribes to.
	Follow bool
	// Root is the folder that relative paths in a followed bootstrap begin at.
	Root string
	// Input replaces the source tree by one document; nil for none.
	Input *load.Input
	// Ignore holds glob patterns of files in the tree that hold no resources.
	Ignore []string
	// Allow names folders outside the tree that its links and relative paths may lead
	// into.
	Allow []string
	// Overlay has texts that are read in the place of files of the tree (load.Options).
	Overlay map[string][]byte
	// AllowEmpty accepts a tree without resources.
	AllowEmpty bool
	// Bootstrap is the path of the Envoy's bootstrap, whose static resources rules then
	// know. Empty for none.
	Bootstrap string
	// Disable holds the codes of validation rules that do not run.
	Disable []string
	// Enable holds the codes of opt-in rules that run.
	Enable []string
	// Timings makes Check measure its stages.
	Timings bool

	// Envoy is the version that is to take the resources; nil means the latest that is known.
	Envoy *envoyapi.Version

	// Out is the output directory. The fields below are for publishing into it.
	Out string
	// EnvoyPath is Out as Envoy sees it; empty means Out made absolute.
	EnvoyPath string
	// Format of the published files; nil means JSON.
	Format *render.Format
	// Endpoints says where Publish puts endpoint assignments.
	Endpoints EndpointsMode
	// InotifyBudget is how many path subscriptions Envoy can hold.
	InotifyBudget int
	// StepGap is the wait between two steps of a plan that both moved files.
	StepGap time.Duration
	// TrimDelay is how long a retired cluster stays, for connections on a draining
	// listener.
	TrimDelay time.Duration
	// Clock notices when somebody sets the clock; nil for a short run.
	Clock *Clock
	// Envoys confirm each step; nil where none is asked.
	Envoys *envoy.Fleet
	// Confirm makes what confirms each step in place of Envoys, where Envoys is nil. of has
	// the ids that its refusals go on record with. nil where nothing does.
	Confirm func(of publish.Refusal) publish.Confirmer
	// Log gets the log lines; nil discards them.
	Log *slog.Logger
}

// EndpointsMode is a value of --eds.
type EndpointsMode string

const (
	// EndpointsAuto starts with files, and changes to inline for good when files exceed the
	// inotify budget.
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
	unread   bool // a Check ended well, and did not read the source tree
	judge    *validate.Judge
	renderer render.Renderer
	out      *publish.Reader
	derived  map[*xds.Type]*derived // from the published clusters and listeners
	// readOut are the published files that were read back, by path.
	readOut map[string]*readOut
	// rendered are the files that were rendered last, by path: they need not be read back
	// once they are published.
	rendered map[string]*readOut
	planned  planned
	// subscribed are the subscriptions that were found last to the published files.
	subscribed *subscribers
	// republish are published files that the next Publish moves once more.
	republish []string
}

// New returns a Pipeline.
func New(o Options) *Pipeline {
	o.Format = cmp.Or(o.Format, render.JSON)
	return &Pipeline{
		options:  o,
		log:      cmp.Or(o.Log, slog.New(slog.DiscardHandler)),
		loader:   load.New(load.Options{Envoy: o.Envoy, Ignore: o.Ignore, Allow: o.Allow, Overlay: o.Overlay}),
		judge:    validate.NewJudge(rules.All),
		out:      publish.NewReader(o.Out),
		derived:  make(map[*xds.Type]*derived),
		readOut:  make(map[string]*readOut),
		rendered: make(map[string]*readOut),
	}
}

// Opened has the Pipeline read the output directory as d knows it, and where d has it: a
// link on the path that was given may come to lead elsewhere. It ends the trust in what was
// there before.
func (p *Pipeline) Opened(d *publish.Dir) {
	p.options.Out, p.out = d.Path(), d.Reader()
	p.Trust(false)
}

// Trust has the Pipeline believe, until Trust(false), that the plan before was published whole
// and that nobody else has changed the output directory since (publish.Reader.Trust).
func (p *Pipeline) Trust(trust bool) { p.out.Trust(trust) }

// Checked is the result of a Check.
type Checked struct {
	Snapshot    *xds.Snapshot
	Diagnostics diag.List
	Summary     diag.Summary
	// Line returns the source line at a position.
	Line func(diag.Position) (string, bool)
	// Inlined are the files that resources name by a relative path: Check put their
	// content into the resources.
	Inlined []string
	// Timings is nil unless Options ask for it.
	Timings *Timings
}

// Timings is the time that a Check took.
type Timings struct {
	// Load is the time of reading and decoding.
	Load time.Duration
	// Rules is the time of the rules, over all cores.
	Rules validate.Timings
}

// Accepted reports whether there is no finding of severity Error.
func (c *Checked) Accepted() bool { return !c.Diagnostics.HasErrors() }

// Invalid reports whether the findings forbid to publish the Snapshot: errors do, and with
// warningsAsErrors warnings do too.
func (c *Checked) Invalid(warningsAsErrors bool) bool {
	return !c.Accepted() || warningsAsErrors && c.Summary.Warnings > 0
}

// Add adds findings, such as those of Plan.
func (c *Checked) Add(list diag.List) {
	c.Diagnostics = append(c.Diagnostics, list...).Sort()
	c.Summary.Errors, c.Summary.Warnings = c.Diagnostics.Count(diag.Error), c.Diagnostics.Count(diag.Warning)
}

// Merge adds the findings and the counts of another tree. It keeps the Snapshot of c.
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

// Check loads and validates the source tree. Diagnostics says what is wrong in it; an error
// means that a file could not be read, or that ctx has ended.
func (p *Pipeline) Check(ctx context.Context) (*Checked, error) {
	return p.checkLoaded(ctx, p.load)
}

// Update is Check where the paths are known that changed in the source tree since the last
// call (load.Loader.Update).
func (p *Pipeline) Update(ctx context.Context, changed []string) (*Checked, error) {
	return p.checkLoaded(ctx, func(ctx context.Context) (*load.Result, error) {
		if p.unread { // other paths may have changed too
			return p.load(ctx)
		}
		return p.loader.Update(ctx, p.options.Source, changed)
	})
}

func (p *Pipeline) checkLoaded(ctx context.Context, load func(context.Context) (*load.Result, error)) (*Checked, error) {
	checked, err := p.check(ctx, load)
	if ctx.Err() != nil {
		return nil, ctx.Err() // the findings are incomplete
	}
	if err == nil && !p.options.Follow {
		checked.Add(p.takenAsResources(checked.Diagnostics))
	}
	return checked, err
}

func (p *Pipeline) check(ctx context.Context, load func(context.Context) (*load.Result, error)) (*Checked, error) {
	if p.options.Follow {
		return p.follow(ctx)
	}
	if c := p.Overlap(); c != nil {
		p.unread = true
		return c, nil
	}
	known, knownDiagnostics, err := p.known()
	if err != nil {
		return nil, err
	}
	start := time.Now()
	loaded, err := load(ctx)
	if err != nil {
		return nil, err
	}
	p.unread = false
	c := &Checked{Snapshot: loaded.Snapshot(), Line: loaded.Line, Inlined: loaded.Inlined}
	c.loaded(start, p.options)
	c.Summary.Files, c.Summary.Resources = loaded.FileCount(), c.Snapshot.Len()
	c.Add(knownDiagnostics)
	c.Add(loaded.Diagnostics)
	c.Add(p.linksToOut(loaded.Linked()))
	if c.Snapshot.Len() == 0 && c.Accepted() && !p.options.AllowEmpty {
		c.Add(diag.List{{
			Code: codeEmptyTree.Name, Position: diag.Position{File: p.options.Source},
			Message: "the source tree holds no resource; published, it would remove everything from Envoy",
			Help:    "check the path; where nothing is what you want, use --allow-empty",
		}})
		return c, nil
	}
	c.Add(p.judge.Run(ctx, c.Snapshot, validate.Options{
		Envoy:          p.options.Envoy,
		BootstrapFacts: known,
		Disable:        p.options.Disable,
		Enable:         p.options.Enable,
		Now:            time.Now(),
		// A resource that could not be read is missing here and not in the tree.
		Partial: loaded.Partial,
		Timings: c.rules(),
	}))
	return c, nil
}

// loaded stores the time of loading, where Options ask for it.
func (c *Checked) loaded(start time.Time, o Options) {
	if o.Timings {
		c.Timings = &Timings{Load: time.Since(start)}
	}
}

// rules returns the Timings of the rules, or nil.
func (c *Checked) rules() *validate.Timings {
	if c.Timings == nil {
		return nil
	}
	return &c.Timings.Rules
}

// follow checks a bootstrap.
func (p *Pipeline) follow(ctx context.Context) (*Checked, error) {
	start := time.Now()
	followed, err := follow.Bootstrap(ctx, p.options.Source, follow.Options{Envoy: p.options.Envoy, Root: p.options.Root, Disable: p.options.Disable})
	if err != nil {
		return nil, err
	}
	c := &Checked{Snapshot: followed.Snapshot, Line: followed.Line, Inlined: followed.Data}
	c.loaded(start, p.options)
	c.Summary.Files, c.Summary.Resources = len(followed.Files), c.Snapshot.Len()
	c.Add(followed.Diagnostics)
	c.Add(validate.Run(ctx, c.Snapshot, rules.All, validate.Options{
		Envoy:          p.options.Envoy,
		BootstrapFacts: followed.BootstrapFacts,
		Bootstrap:      followed.Bootstrap,
		Disable:        p.options.Disable,
		Enable:         p.options.Enable,
		Partial:        followed.Partial,
		Timings:        c.rules(),
	}))
	c.Add(p.takenAsBootstrap(followed.Bootstrap, c.Snapshot.Len(), followed.Diagnostics))
	return c, nil
}

func (p *Pipeline) load(ctx context.Context) (*load.Result, error) {
	if p.options.Input != nil {
		in := *p.options.Input
		in.Envoy = p.options.Envoy
		return load.Parse(in), nil
	}
	return p.loader.Load(ctx, p.options.Source)
}

// known reads Options.Bootstrap.
func (p *Pipeline) known() (xds.BootstrapFacts, diag.List, error) {
	if p.options.Bootstrap == "" {
		return xds.BootstrapFacts{}, nil, nil
	}
	b, list, err := load.Bootstrap(p.options.Bootstrap, p.options.Envoy)
	if err != nil || list.HasErrors() {
		return xds.BootstrapFacts{}, list, err
	}
	return xds.BootstrapFactsOf(b), list, nil
}

// Overlap returns a finding where the output directory is inside the source tree, or the
// reverse: published files would be read as sources again. It returns nil where the two are
// apart. Check begins with it; do not write into Out before.
func (p *Pipeline) Overlap() *Checked {
	if p.options.Out == "" {
		return nil
	}
	source, out := fspath.Resolve(p.options.Source), fspath.Resolve(p.options.Out)
	for _, c := range []struct{ inner, outer, message string }{
		{out, source, "the output directory %s lies inside the source tree %s"},
		{source, out, "the source tree %[2]s lies inside the output directory %[1]s"},
	} {
		if fspath.Within(c.inner, c.outer) {
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

// linksToOut finds links of the source tree that lead into the output directory.
func (p *Pipeline) linksToOut(files []string) diag.List {
	if p.options.Out == "" {
		return nil
	}
	out := fspath.Resolve(p.options.Out)
	folders := make(map[string]string)
	var list diag.List
	for _, f := range files {
		dir := filepath.Dir(f)
		if _, ok := folders[dir]; !ok {
			folders[dir] = fspath.Resolve(dir)
		}
		real := filepath.Join(folders[dir], filepath.Base(f))
		if info, err := os.Lstat(f); err == nil && info.Mode()&os.ModeSymlink != 0 {
			real = fspath.Resolve(f)
		}
		if fspath.Within(real, out) {
			list = append(list, diag.Diagnostic{
				Code: codeOutputInSource.Name, Position: diag.Position{File: f},
				Message: fmt.Sprintf("a link of the source tree leads to %s, in the output directory %s", real, p.options.Out),
				Help:    "remove the link, or name it in ignore: of xdspub.yaml",
			})
		}
	}
	return list
}
