// Package check reads and validates resources: those of a source tree, or those that an Envoy
// gets by its bootstrap. It writes nothing, and does not know what becomes of the Snapshot.
//
//	tree := check.New(check.Options{Path: "config"})
//	result, err := tree.Check(ctx) // err: a file can't be read; findings: result.Diagnostics
package check

import (
	"context"
	"slices"
	"time"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"

	"xdspub/check/oracle"
	"xdspub/check/policy"
	"xdspub/diag"
	"xdspub/envoy/envoyapi"
	"xdspub/source/load"
	"xdspub/validate"
	"xdspub/xds"
	"xdspub/xds/variants"
)

// Rules says how resources are judged.
type Rules struct {
	// Envoy is the release that gets the resources; nil means the latest known release.
	Envoy *envoyapi.Version
	// Disable holds the codes of validation rules that do not run.
	Disable []string
	// Enable holds the codes of opt-in rules that run.
	Enable []string
	// Overrides change the severities of validation rules, and drop findings. Disable and Enable alone select
	// the rules that run.
	Overrides policy.Overrides
	// Profiles name the kinds of clients that resources are judged for; empty means Files.
	Profiles []string
	// StubSecrets permits missing files of certificates, keys and other secrets on this machine.
	StubSecrets bool
	// Client is the client that a tree with variants is judged for; nil means each client that the variants
	// distinguish.
	Client *variants.Client
	// Timings makes a check measure its stages.
	Timings bool
	// Oracle judges resources without errors; nil means none.
	Oracle *oracle.Oracle
}

// The profiles of Envoys: by files, and by streams of a management server.
const (
	Files   = string(validate.EnvoyFile)
	Streams = string(validate.EnvoyADS)
)

// Profiles returns the names of all profiles.
func Profiles() (names []string) {
	for _, p := range validate.Profiles {
		names = append(names, string(p))
	}
	return names
}

// timings returns the Timings of a check that began to load at a time, or nil.
func (o Rules) timings(start time.Time) *Timings {
	if !o.Timings {
		return nil
	}
	return &Timings{Load: time.Since(start)}
}

// forFiles reports whether resources are judged for readers of files.
func (o Rules) forFiles() bool { return len(o.Profiles) == 0 || slices.Contains(o.Profiles, Files) }

// ForEnvoys reports whether resources are judged for Envoys, among others.
func (o Rules) ForEnvoys() bool { return o.forFiles() || slices.Contains(o.Profiles, Streams) }

// judgeIn has Add of a Result judge findings whose files are below a root.
func (o Rules) judgeIn(root string, r *Result) {
	r.ignored = &ignored{}
	r.judge = func(list diag.List) diag.List { return r.ignored.apply(o.Overrides.Apply(list, root)) }
}

// Lenient returns the codes of the errors that published resources may have: the codes of disabled rules, and
// the codes that Overrides lower in some file. A published resource stands in no file of the tree.
func (o Rules) Lenient() []string { return slices.Concat(o.Disable, o.Overrides.Lowered()) }

// rules returns the options of the engine, which measures into the Timings of r.
func (o Rules) rules(r *Result) validate.Options {
	all := validate.Options{Envoy: o.Envoy, Disable: o.Disable, Enable: o.Enable}
	for _, name := range o.Profiles {
		all.Profiles = append(all.Profiles, validate.Profile(name))
	}
	if r.Timings != nil {
		all.Timings = &r.Timings.Rules
	}
	return all
}

// Result holds the checked resources and the findings about them.
type Result struct {
	// Snapshot is the Snapshot for Rules.Client; without a Client, for a client without parameters.
	Snapshot *xds.Snapshot
	// Variants has all variants of all resources.
	Variants *variants.Tree
	// ClientsUnknown means that the clients of some resources are unknown, which a finding reports.
	ClientsUnknown bool
	Diagnostics    diag.List
	Summary        diag.Summary
	// Line returns the source line at a position.
	Line func(diag.Position) (string, bool)
	// Inlined are the files that resources name by a relative path: their content was put
	// into the resources.
	Inlined []string
	// Timings is nil unless Rules ask for it.
	Timings *Timings
	// Targets are the results for Options.Targets, none if nothing was judged for them. Diagnostics has the
	// findings of all targets, Shared the findings that each target has.
	Targets []TargetResult
	Shared  diag.List

	ignored *ignored
	judge   func(diag.List) diag.List // by Rules.Overrides and ignored; nil leaves findings as they are
}

// Timings is the time that a check took.
type Timings struct {
	// Load is the time of reading and decoding.
	Load time.Duration
	// Rules is the time of the rules, over all cores.
	Rules validate.Timings
}

// Accepted reports whether no finding has severity Error.
func (r *Result) Accepted() bool { return !r.Diagnostics.HasErrors() }

// Invalid reports whether the findings forbid to publish the Snapshot: errors do, and with
// warningsAsErrors warnings do too.
func (r *Result) Invalid(warningsAsErrors bool) bool {
	return !r.Accepted() || warningsAsErrors && r.Summary.Warnings > 0
}

// Add adds findings, such as those of a plan, as Rules.Overrides and comments in the source have them.
func (r *Result) Add(list diag.List) {
	if r.judge != nil {
		list = r.judge(list)
	}
	r.add(list)
}

// addRead adds the findings of reading, and the comments that ignore findings. Findings of the loader are
// never ignored, because the Snapshot lacks the unread part. A rule may share a loader's code.
func (r *Result) addRead(list diag.List, comments []load.IgnoreComment) {
	var read, others diag.List
	for _, d := range list {
		if slices.ContainsFunc(load.Codes, func(c diag.Code) bool { return c.Name == d.Code }) {
			read = append(read, d)
		} else {
			others = append(others, d)
		}
	}
	r.add(read)
	var wrong diag.List
	r.ignored, wrong = newIgnored(comments, read)
	r.Add(append(others, wrong...))
}

// addUnused reports comments that ignore no finding, after all findings are known. It reports none if
// something could not be read or listed, or if unknown clusters and listeners may have the names.
func (r *Result) addUnused(o validate.Options, read diag.List) {
	if slices.Contains(o.Incomplete, xds.Cluster) || slices.Contains(o.Incomplete, xds.Listener) || read.HasErrors() || hasOneOf(r.Diagnostics, diag.TooMany.Name) {
		return
	}
	list := r.ignored.unused(o)
	if len(r.Targets) == 0 {
		r.Add(list)
		return
	}
	for _, t := range r.Targets {
		t.Add(list)
	}
	r.MergeTargets()
}

// add adds findings as they are.
func (r *Result) add(list diag.List) {
	r.Diagnostics = append(r.Diagnostics, list...).Sort()
	r.Summary.Errors, r.Summary.Warnings = r.Diagnostics.Count(diag.Error), r.Diagnostics.Count(diag.Warning)
}

// Keep replaces the findings by some of them, in their order.
func (r *Result) Keep(list diag.List) {
	r.Diagnostics = nil
	r.add(list)
}

// KeepNew replaces the findings by those that a baseline does not list, in their order, and counts the
// findings that it leaves out.
func (r *Result) KeepNew(list diag.List) {
	r.Summary.Baseline.Add(r.Diagnostics, list)
	r.Keep(list)
}

// Only leaves out the findings that do not concern somebody, and counts them as hidden.
func (r *Result) Only(concerns func(diag.Diagnostic) bool) {
	few := r.Diagnostics[:0:0]
	for _, d := range r.Diagnostics {
		if concerns(d) {
			few = append(few, d)
		}
	}
	r.Summary.Hidden.Add(r.Diagnostics, few)
	r.Keep(few)
}

// Rename gives the files in findings other names.
func (r *Result) Rename(name func(file string) string) {
	was, names := make(map[string]string), make(map[string]string)
	rename := func(file *string) {
		is, known := names[*file]
		if !known {
			is = name(*file)
			names[*file], was[is] = is, *file
		}
		*file = is
	}
	for i := range r.Diagnostics {
		d := &r.Diagnostics[i]
		d.Related = slices.Clone(d.Related) // nobody else's
		rename(&d.File)
		for j := range d.Related {
			rename(&d.Related[j].File)
		}
		for j := range d.Fixes {
			d.Fixes[j].Edits = slices.Clone(d.Fixes[j].Edits)
			for k := range d.Fixes[j].Edits {
				rename(&d.Fixes[j].Edits[k].File)
			}
		}
	}
	line := r.Line
	r.Line = func(p diag.Position) (string, bool) {
		if file, ok := was[p.File]; ok {
			p.File = file
		}
		return line(p)
	}
	r.Diagnostics = r.Diagnostics.Sort()
}

// ask adds the Oracle's findings about the Snapshot for an Envoy with a bootstrap. ask skips a Snapshot that
// is refused anyway. The error is not nil if the Oracle could not be asked.
func (r *Result) ask(ctx context.Context, o Rules, bootstrap *bootstrapv3.Bootstrap, path string) error {
	if o.Oracle == nil || !r.Accepted() {
		return nil
	}
	list, err := o.Oracle.Judge(ctx, oracle.Candidate{Snapshot: r.Snapshot, Envoy: o.Envoy, Bootstrap: bootstrap, Path: path})
	r.Add(list)
	return err
}

// Merge adds the findings and the counts of another check. It keeps the Snapshot of r.
func (r *Result) Merge(other *Result) {
	mine := r.Line
	r.Line = func(p diag.Position) (string, bool) {
		if line, ok := mine(p); ok {
			return line, ok
		}
		return other.Line(p)
	}
	if r.Timings != nil && other.Timings != nil {
		r.Timings.Load += other.Timings.Load
		r.Timings.Rules.Add(&other.Timings.Rules)
	}
	r.Summary.Hidden.AddCounts(other.Summary.Hidden)
	r.Summary.Baseline.AddCounts(other.Summary.Baseline)
	r.Summary.Files += other.Summary.Files
	r.Summary.Resources += other.Summary.Resources
	r.add(other.Diagnostics) // its own Overrides were applied
}
