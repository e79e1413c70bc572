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
	"xdspub/source/decode"
	"xdspub/validate"
	"xdspub/xds"
	"xdspub/xds/variants"
)

// Rules are the options that all kinds of checks share.
type Rules struct {
	// Envoy is the version that gets the resources; nil means the latest known version.
	Envoy *envoyapi.Version
	// Disable holds the codes of validation rules that do not run.
	Disable []string
	// Enable holds the codes of opt-in rules that run.
	Enable []string
	// Overrides change the severities of validation rules, and drop findings. They do not decide which rules run:
	// Disable and Enable do.
	Overrides policy.Overrides
	// Profiles are the names of the kinds of clients for which resources are judged; empty means Files.
	Profiles []string
	// StubSecrets permits missing files of certificates, keys and other secrets on this machine.
	StubSecrets bool
	// Client is the client for which a tree with variants is judged. Nil means all clients that the variants
	// distinguish.
	Client *variants.Client
	// Published means that the files of a client without parameters are published although Client is nil: the errors
	// of this client are errors of the tree, while a survey of all clients lowers the errors of clients that may not
	// exist.
	Published bool
	// Timings means that a check measures its stages (Result.Timings).
	Timings bool
	// Oracle is an Envoy that judges resources without an error of a rule; nil means none.
	Oracle *oracle.Oracle
}

// The profiles of Envoys: Files for an Envoy that reads files, Streams for an Envoy that asks a management server.
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

// timings returns the Timings of a check that began to load at start, or nil if Rules do not ask for them.
func (o Rules) timings(start time.Time) *Timings {
	if !o.Timings {
		return nil
	}
	return &Timings{Load: time.Since(start)}
}

// forFiles reports whether some clients read files.
func (o Rules) forFiles() bool { return len(o.Profiles) == 0 || slices.Contains(o.Profiles, Files) }

// ForEnvoys reports whether some clients are Envoys.
func (o Rules) ForEnvoys() bool { return o.forFiles() || slices.Contains(o.Profiles, Streams) }

// judgeIn makes r.Add apply Overrides. Paths in Overrides are relative to root.
func (o Rules) judgeIn(root string, r *Result) {
	r.ignored = &ignored{}
	r.judge = func(list diag.List) diag.List { return r.ignored.apply(o.Overrides.Apply(list, root)) }
}

// Lenient returns the codes of errors that published resources may have: the codes of disabled rules, and the codes
// that Overrides lower in some file. xdspub can't tell which file of the tree a published resource came from.
func (o Rules) Lenient() []string { return slices.Concat(o.Disable, o.Overrides.Lowered()) }

// rules returns the options for package validate. The rules measure into the Timings of r.
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
	// Snapshot is the Snapshot of Rules.Client. If Client is nil, it is the Snapshot of a client without
	// parameters.
	Snapshot *xds.Snapshot
	// Variants has all variants of all resources.
	Variants *variants.Tree
	// ClientsUnknownIn are the folders in which, and below which, the clients of files are unknown. No rule has judged
	// the resources then, and Snapshot has all variants. Findings report the reason. ClientsUnknownIn is empty if all
	// clients are known.
	ClientsUnknownIn []string
	Diagnostics      diag.List
	Summary          diag.Summary
	// Line returns the source line at a position.
	Line func(diag.Position) (string, bool)
	// Inlined are the files whose content was put into resources, because the resources name them by relative
	// paths.
	Inlined []string
	// Read is the number of the Contents of Options.Remote; 0 for a source tree.
	Read uint64
	// Owners are the patterns of the folders that own resources (Options.Owners); nil if the owners are unknown.
	Owners []string
	// Timings is nil unless Rules.Timings is set.
	Timings *Timings
	// Targets has a result for each of Options.Targets. It is empty without Options.Targets. Diagnostics has the
	// findings of all targets, and Shared the findings that each target has.
	Targets []TargetResult
	Shared  diag.List

	ignored *ignored
	judge   func(diag.List) diag.List // applies Rules.Overrides and the comments that ignore findings; nil changes nothing
}

// Timings holds the times of the stages of a check.
type Timings struct {
	// Load is the time of reading and decoding.
	Load time.Duration
	// Rules is the time of the rules, summed over all cores.
	Rules validate.Timings
}

// Accepted reports whether no finding has severity Error.
func (r *Result) Accepted() bool { return !r.Diagnostics.HasErrors() }

// Invalid reports whether the findings forbid to publish the Snapshot. Errors forbid it; if warningsAsErrors is
// set, warnings do, too.
func (r *Result) Invalid(warningsAsErrors bool) bool {
	return !r.Accepted() || warningsAsErrors && r.Summary.Warnings > 0
}

// Add adds findings, such as those of a plan, after it has applied Rules.Overrides and the comments that ignore
// findings.
func (r *Result) Add(list diag.List) {
	if r.judge != nil {
		list = r.judge(list)
	}
	r.add(list)
}

// addRead adds the findings of reading, and takes the comments that ignore findings. A comment can't ignore a
// finding of the loader, because the Snapshot lacks the part that the finding is about. If a rule shares the code,
// a comment can ignore the finding of the rule.
func (r *Result) addRead(list diag.List, comments []decode.IgnoreComment) {
	var read, others diag.List
	for _, d := range list {
		if slices.ContainsFunc(decode.Codes, func(c diag.Code) bool { return c.Name == d.Code }) {
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

// addUnused reports comments that ignore no finding. All findings must be known. addUnused reports nothing if the
// list of findings may be incomplete: a file could not be read, findings were left out at a limit, or the client
// may have further clusters or listeners.
func (r *Result) addUnused(o validate.Options, read diag.List) {
	if slices.Contains(o.Incomplete, xds.Cluster) || slices.Contains(o.Incomplete, xds.Listener) || read.HasErrors() ||
		hasOneOf(r.Diagnostics, diag.TooMany.Name) {
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

// add adds findings without a change.
func (r *Result) add(list diag.List) {
	r.Diagnostics = append(r.Diagnostics, list...).Sort()
	r.Summary.Errors, r.Summary.Warnings = r.Diagnostics.Count(diag.Error), r.Diagnostics.Count(diag.Warning)
}

// Keep replaces the findings by list, a part of them.
func (r *Result) Keep(list diag.List) {
	r.Diagnostics = nil
	r.add(list)
}

// KeepNew replaces the findings by list, which has the findings that a baseline does not list. It counts the other
// findings as those of the baseline.
func (r *Result) KeepNew(list diag.List) {
	r.Summary.Baseline.Add(r.Diagnostics, list)
	r.Keep(list)
}

// Only removes the findings for which concerns returns false, and counts them as hidden.
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

// Rename changes the names of the files in findings.
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
		d.Related = slices.Clone(d.Related) // other Results may share Related
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

// ask asks the Oracle about the Snapshot, and adds its findings. bootstrap is the bootstrap of the Envoy. ask does
// nothing for a Snapshot with an error. It returns an error if the Oracle could not be asked.
func (r *Result) ask(ctx context.Context, o Rules, bootstrap *bootstrapv3.Bootstrap, path string) error {
	if o.Oracle == nil || !r.Accepted() {
		return nil
	}
	list, err := o.Oracle.Judge(ctx, oracle.Candidate{Snapshot: r.Snapshot, Envoy: o.Envoy, Bootstrap: bootstrap, Path: path})
	r.Add(list)
	return err
}

// Merge adds the findings and the counts of another check. The Snapshot of r stays.
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
	r.add(other.Diagnostics) // other has already applied its Overrides
}
