package check

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"

	"xdspub/check/oracle"
	"xdspub/diag"
	"xdspub/internal/fspath"
	"xdspub/source/load"
	"xdspub/source/owners"
	"xdspub/source/syntax"
	"xdspub/validate"
	"xdspub/validate/rules"
	"xdspub/xds"
	"xdspub/xds/variants"
)

// Options are the options of a Tree.
type Options struct {
	Rules
	// Path is the path of the source tree, or of a single file.
	Path string
	// Input is a document that replaces the source tree; nil for none.
	Input *load.Input
	// Remote has the resources in place of a source tree; nil for a source tree. Path is then the name of the Remote.
	Remote load.Reader
	// Ignore holds glob patterns of files in the tree that are no resource files.
	Ignore []string
	// IgnoredAt holds the place of each pattern of Ignore in a settings file. It is nil for patterns of the command
	// line.
	IgnoredAt []diag.Position
	// Allow names folders outside the tree. Links and relative paths of the tree may lead into them.
	Allow []string
	// Overlay maps files of the tree to texts that are read instead (load.Options).
	Overlay map[string][]byte
	// Owners are patterns of folders that own the resources in them (package owners). OwnersAt holds the place of each
	// pattern in a settings file.
	Owners   []string
	OwnersAt []diag.Position
	// DescriptorSets are files with the user's own types. Rules.Envoy already has the types. Descriptor sets in the
	// tree are not read as resource files.
	DescriptorSets []string
	// AllowEmpty accepts a tree without resources.
	AllowEmpty bool
	// Bootstrap is the path of the Envoy's bootstrap, or empty. Rules then know its static resources.
	Bootstrap string
	// Targets are the kinds of clients for which the tree is checked. They replace Client and Profiles; a nil
	// Targets does not. The tree is read for the profiles of all targets.
	Targets []Target
}

// Tree checks a source tree repeatedly, and caches unchanged files. A Tree is not for concurrent use.
type Tree struct {
	options  Options
	outs     []string // the output directories
	loader   *load.Loader
	judge    func(context.Context, *xds.Snapshot, validate.Options) diag.List
	variants *variantJudges // nil before the tree has variants
	targets  *targetJudges  // nil before targets are judged
	all      *variants.Tree // the variants of the last Check; nil before the first
	unread   bool           // the last Check found an overlap, and did not read the source tree
	read     uint64         // the number of the last Contents of Options.Remote
}

// New returns a Tree. It reads nothing yet.
func New(o Options) *Tree {
	o.Profiles = o.allProfiles()
	return &Tree{
		options: o,
		loader: load.New(load.Options{
			Envoy: o.Envoy, Ignore: o.Ignore, Beside: o.beside(), Allow: o.Allow, Overlay: o.Overlay,
			StubSecrets: o.StubSecrets, Streams: o.Streams(), Owners: o.Owners,
		}),
		judge: validate.NewJudge(rules.All).Run,
	}
}

// beside returns the descriptor sets that are in the tree, by their paths below the tree.
func (o Options) beside() (below []string) {
	if o.Remote != nil {
		return nil
	}
	for _, file := range o.DescriptorSets {
		if rel, err := filepath.Rel(fspath.Resolve(o.Path), fspath.Resolve(file)); err == nil && filepath.IsLocal(rel) {
			below = append(below, rel)
		}
	}
	return below
}

// Once does what the first Check of a Tree does. It takes less memory, because it records no lookups for a second
// Check.
func Once(ctx context.Context, o Options) (*Result, error) {
	t := New(o)
	t.judge = func(ctx context.Context, s *xds.Snapshot, o validate.Options) diag.List {
		return validate.Run(ctx, s, rules.All, o)
	}
	return t.Check(ctx)
}

// Check loads and validates the source tree. Result.Diagnostics has the faults. Check returns an error if a file
// could not be read, or if ctx has ended.
func (t *Tree) Check(ctx context.Context) (*Result, error) { return t.checkLoaded(ctx, t.load) }

// Update does what Check does, but reads only the paths in changed. All paths that changed in the source tree since
// the last call must be in changed (load.Loader.Update).
func (t *Tree) Update(ctx context.Context, changed []string) (*Result, error) {
	return t.checkLoaded(ctx, func(ctx context.Context) (*load.Result, error) {
		if t.unread || t.options.Remote != nil { // changed does not have the changes before the overlap ended
			return t.load(ctx)
		}
		return t.loader.Update(ctx, t.options.Path, changed)
	})
}

// Compress makes the Tree hold what it has read in less space (load.Loader.Compress).
func (t *Tree) Compress() { t.loader.Compress() }

func (t *Tree) load(ctx context.Context) (*load.Result, error) {
	if t.options.Input != nil {
		in := *t.options.Input
		in.Envoy, in.Streams = t.options.Envoy, t.options.Streams()
		return load.Parse(in), nil
	}
	if t.options.Remote != nil {
		c, err := t.options.Remote.Read(ctx)
		if err != nil {
			return nil, err
		}
		t.read = c.N
		return t.loader.Take(t.options.Path, c), nil
	}
	return t.loader.Load(ctx, t.options.Path)
}

func (t *Tree) checkLoaded(ctx context.Context, load func(context.Context) (*load.Result, error)) (*Result, error) {
	r, err := t.check(ctx, load)
	if ctx.Err() != nil {
		return nil, ctx.Err() // the findings are incomplete
	}
	if err == nil {
		r.Add(t.takenAsResources(r.Diagnostics))
		r.alike(t.options.Targets)
	}
	return r, err
}

func (t *Tree) check(ctx context.Context, load func(context.Context) (*load.Result, error)) (*Result, error) {
	for _, out := range t.outs {
		if r := t.options.Overlap(out); r != nil {
			t.unread = true
			return r, nil
		}
	}
	bootstrap, knownDiagnostics, err := t.bootstrap()
	if err != nil {
		return nil, err
	}
	start := time.Now()
	loaded, err := load(ctx)
	if err != nil {
		return nil, err
	}
	t.unread = false
	r := &Result{
		Snapshot: loaded.Snapshot(), ClientsUnknownIn: loaded.ClientsUnknownIn, Line: loaded.Line, Inlined: loaded.Inlined,
		Timings: t.options.timings(start), Read: t.read, Owners: t.options.Owners,
	}
	t.all = t.all.After(r.Snapshot)
	r.Variants = t.all
	t.options.judgeIn(t.options.Path, r)
	r.Summary.Files, r.Summary.Resources = loaded.FileCount(), r.Snapshot.Len()
	r.add(knownDiagnostics)
	r.addRead(loaded.Diagnostics, loaded.IgnoreComments())
	r.Add(t.linksToOut(loaded.Linked()))
	r.Add(t.unusedPatterns())
	r.Add(t.unusedOwners())
	if r.Snapshot.Len() == 0 && r.Accepted() && !t.options.AllowEmpty {
		r.Add(t.emptyTree(loaded))
		return r, nil
	}
	return r, t.judgeRead(ctx, r, loaded, bootstrap)
}

// judgeRead judges the resources that were read.
func (t *Tree) judgeRead(ctx context.Context, r *Result, loaded *load.Result, bootstrap *bootstrapv3.Bootstrap) (err error) {
	o := t.rulesFor(r, bootstrap)
	if loaded.Partial { // an unread resource may be of any type
		o.Incomplete = xds.Types
	}
	switch {
	case t.options.Targets != nil:
		judged := len(loaded.ClientsUnknownIn) == 0 && (!r.Variants.Varies() || t.judgeAllVariants(ctx, r.Variants, o, r))
		err = t.judgeTargets(ctx, o, r, judged, bootstrap)
	case len(loaded.ClientsUnknownIn) == 0: // else the resources of each client are unknown
		err = t.judgeClients(ctx, r, o, bootstrap)
	}
	r.addUnused(o, loaded.Diagnostics)
	return err
}

// rulesFor returns the options of the rules for the resources of r.
func (t *Tree) rulesFor(r *Result, bootstrap *bootstrapv3.Bootstrap) validate.Options {
	o := t.options.rules(r)
	o.Now = time.Now()
	if len(t.options.Owners) > 0 {
		o.Enable = append(slices.Clone(o.Enable), ruleOfOwners)
	}
	if bootstrap != nil {
		o.BootstrapFacts = xds.BootstrapFactsOf(bootstrap)
		o.Incomplete = t.served(bootstrap, r.Snapshot)
	}
	return o
}

// judgeClients judges the resources of Rules.Client, or of all clients.
func (t *Tree) judgeClients(ctx context.Context, r *Result, o validate.Options, bootstrap *bootstrapv3.Bootstrap) error {
	if r.Variants.Varies() {
		t.judgeVariants(ctx, r.Variants, o, r)
	} else {
		r.Add(t.judge(ctx, r.Snapshot, o))
	}
	return r.ask(ctx, t.options.Rules, bootstrap, t.options.Path)
}

// Judge judges a Snapshot of resources that were read from source trees, or from an output directory, by the same rules
// as Check. of are the Results of the source trees, the current one first: their comments ignore findings. The codes of
// Rules.Lenient are no faults of resources from an output directory, because nobody knows the files of the source tree
// that they came from. A Tree that judges Snapshots must not check its source tree.
func (t *Tree) Judge(ctx context.Context, s *xds.Snapshot, of ...*Result) (*Result, error) {
	bootstrap, _, err := t.bootstrap()
	if err != nil {
		return nil, err
	}
	r := &Result{Snapshot: s, Line: of[0].Line, Inlined: of[0].Inlined}
	t.all = t.all.After(s)
	r.Variants = t.all
	r.Summary.Resources = s.Len()
	r.judge = func(list diag.List) diag.List {
		list = slices.DeleteFunc(slices.Clone(list), t.isLenient)
		for _, o := range of {
			if o.judge != nil {
				list = o.judge(list)
			}
		}
		return list
	}
	if s.Len() == 0 && !t.options.AllowEmpty {
		r.Add(diag.List{emptyTree(t.options.Path)})
		return r, nil
	}
	err = t.judgeClients(ctx, r, t.rulesFor(r, bootstrap), bootstrap)
	if ctx.Err() != nil {
		return nil, ctx.Err() // the findings are incomplete
	}
	return r, err
}

// isLenient reports whether a finding is about a resource from an output directory, and has a code of Rules.Lenient.
func (t *Tree) isLenient(d diag.Diagnostic) bool {
	if !slices.ContainsFunc(t.outs, func(out string) bool { return fspath.Within(d.File, out) }) {
		return false
	}
	for code := range diag.Selectors(d.Code) {
		if slices.Contains(t.options.Lenient(), code) {
			return true
		}
	}
	return false
}

// served returns the types of which the Snapshot has no resource, and which an Envoy with the bootstrap gets from a
// server. It returns no type for a served tree, whose clients have no other server.
func (t *Tree) served(bootstrap *bootstrapv3.Bootstrap, s *xds.Snapshot) (types []*xds.Type) {
	if !t.options.forFiles() {
		return nil
	}
	for _, t := range xds.Types {
		if xds.ServedBy(bootstrap, t) && len(s.Of(t)) == 0 {
			types = append(types, t)
		}
	}
	return types
}

// OfPart returns the findings about Contents that may not be whole.
func (o Options) OfPart(ctx context.Context, c load.Contents) (diag.List, error) {
	o.Remote, o.AllowEmpty, o.Oracle = c, true, nil
	r, err := Once(ctx, o)
	if err != nil {
		return nil, err
	}
	return r.Diagnostics, nil
}

// Streams reports whether clients get the resources by streams alone.
func (o Options) Streams() bool { return !o.forFiles() }

// Source returns the absolute path of the source tree, or the name of the Remote.
func (o Options) Source() (string, error) {
	if o.Remote != nil {
		return o.Path, nil
	}
	return filepath.Abs(o.Path)
}

// Reasons returns a function that returns the reasons why an Envoy refuses a Snapshot. Reasons returns nil if Rules
// have no Oracle.
func (t *Tree) Reasons() func(context.Context, *xds.Snapshot) (diag.List, error) {
	if t.options.Oracle == nil {
		return nil
	}
	return func(ctx context.Context, s *xds.Snapshot) (diag.List, error) {
		bootstrap, _, err := t.bootstrap()
		if err != nil {
			return nil, err
		}
		return t.options.Oracle.Reasons(ctx, oracle.Candidate{Snapshot: s, Envoy: t.options.Envoy, Bootstrap: bootstrap, Path: t.options.Path})
	}
}

// bootstrap reads Options.Bootstrap. It returns nil if no bootstrap is given, or if the bootstrap has errors.
func (t *Tree) bootstrap() (*bootstrapv3.Bootstrap, diag.List, error) {
	if t.options.Bootstrap == "" {
		return nil, nil, nil
	}
	b, list, err := load.Bootstrap(t.options.Bootstrap, t.options.Envoy)
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("read the bootstrap: %w", err)
	case list.HasErrors():
		return nil, list, nil
	}
	return b, list, nil
}

// emptyTree returns the finding about a tree without resources.
func emptyTree(path string) diag.Diagnostic {
	return diag.Diagnostic{
		Code: codeEmptyTree.Name, Position: diag.Position{File: path},
		Message: "the source tree has no resources: publishing it would remove everything from Envoy",
		Help:    "check the path; if you mean it, use --allow-empty",
	}
}

// emptyTree reports a tree without resources. If no file of the tree was read, the help explains the suffixes of
// files.
func (t *Tree) emptyTree(loaded *load.Result) diag.List {
	d := emptyTree(t.options.Path)
	if loaded.FileCount() == 0 && t.options.Remote == nil {
		d.Message = "the source tree holds no resource file; published, it would remove everything from Envoy"
		d.Help = "a resource file ends in " + syntax.Suffixes()
		var unread []string
		for _, file := range loaded.Unread() {
			below, err := filepath.Rel(t.options.Path, file)
			if err != nil {
				below = file
			}
			unread = append(unread, below)
		}
		if len(unread) > 0 {
			d.Help += "; not read: " + diag.Few(unread, 3)
		}
		d.Help += "; if you mean it, use --allow-empty"
	}
	return diag.List{d}
}

// unusedPatterns reports patterns of Options.Ignore that match no file.
func (t *Tree) unusedPatterns() (list diag.List) {
	if t.options.Input != nil || t.options.Remote != nil || slices.Contains(t.options.Disable, codeUnusedIgnore.Name) {
		return nil
	}
	for _, u := range t.loader.UnusedPatterns() {
		help := "a pattern without a slash is compared with names, one with a slash with paths in the source tree; remove a pattern that is not needed"
		switch {
		case u.Meant != "":
			help = fmt.Sprintf("did you mean %s?", u.Meant)
		case strings.Contains(u.Pattern, "**"):
			help = "** means the same as *, which does not match a slash: for a name in any folder, write a pattern without a slash"
		}
		at := diag.Position{File: t.options.Path}
		if i := slices.Index(t.options.Ignore, u.Pattern); i >= 0 && i < len(t.options.IgnoredAt) {
			at = t.options.IgnoredAt[i]
		}
		list = append(list, diag.Diagnostic{
			Code: codeUnusedIgnore.Name, Severity: codeUnusedIgnore.Severity, Position: at,
			Message: fmt.Sprintf("the ignore pattern %q matches no file and no folder of the source tree", u.Pattern), Help: help,
		})
	}
	return list
}

// unusedOwners reports patterns of Options.Owners that match no folder.
func (t *Tree) unusedOwners() (list diag.List) {
	if t.options.Input != nil || slices.Contains(t.options.Disable, codeUnusedOwners.Name) {
		return nil
	}
	for _, pattern := range owners.New(t.options.Path, t.options.Owners).Unmatched() {
		at := diag.Position{File: t.options.Path}
		if i := slices.Index(t.options.Owners, pattern); i < len(t.options.OwnersAt) {
			at = t.options.OwnersAt[i]
		}
		list = append(list, diag.Diagnostic{
			Code: codeUnusedOwners.Name, Severity: codeUnusedOwners.Severity, Position: at,
			Message: fmt.Sprintf("the pattern %q of owners matches no folder of the source tree: an error in the folder that it means holds all others", pattern),
			Help:    "write paths below the source tree, such as teams/*",
		})
	}
	return list
}
