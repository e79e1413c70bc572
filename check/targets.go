package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/xds/variants"
)

// Target is a kind of client for which a source tree is checked.
type Target struct {
	Name   string
	Client variants.Client
	// Profiles replace Rules.Profiles for these clients.
	Profiles []string
}

// TargetResult is the result of a check for one of Options.Targets.
type TargetResult struct {
	Target
	*Result
}

// allProfiles returns the profiles of all targets or, without targets, Rules.Profiles.
func (o Options) allProfiles() []string {
	if len(o.Targets) == 0 {
		return o.Profiles
	}
	var all []string
	for _, t := range o.Targets {
		for _, name := range t.profiles() {
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return all
}

func (t Target) profiles() []string {
	if len(t.Profiles) == 0 {
		return []string{Files}
	}
	return t.Profiles
}

// targetJudges judge the resources of targets. Targets with equal profiles share a judge, which judges only the
// difference from the target before.
type targetJudges struct {
	of   map[string]*variantJudges      // by the profiles of the targets
	last map[string]*variants.Selection // by the name of the target; the Snapshot of the next Selection knows its difference from the last
}

func newTargetJudges() *targetJudges {
	return &targetJudges{of: make(map[string]*variantJudges), last: make(map[string]*variants.Selection)}
}

// selected returns the Selection of a target.
func (j *targetJudges) selected(tree *variants.Tree, target Target) *variants.Selection {
	s := j.last[target.Name].Then(tree, target.Client)
	j.last[target.Name] = s
	return s
}

// judge judges the resources of a target.
func (j *targetJudges) judge(ctx context.Context, tree *variants.Tree, target Target, o validate.Options) diag.List {
	profiles := strings.Join(target.profiles(), ",")
	if j.of[profiles] == nil {
		j.of[profiles] = newVariantJudges()
	}
	_, list := j.of[profiles].judge(ctx, tree, target.Client, o)
	return list
}

// judgeTargets judges the resources of each target, and then gives r the findings of all targets. judged is false
// if a rule about variants found an error: the resources of targets are unknown then, and each target only gets the
// findings of r.
func (t *Tree) judgeTargets(ctx context.Context, o validate.Options, r *Result, judged bool, bootstrap *bootstrapv3.Bootstrap) error {
	if t.targets == nil {
		t.targets = newTargetJudges()
	}
	var errs []error
	for _, target := range t.options.Targets {
		is := r.Copy()
		if judged {
			s := t.targets.selected(r.Variants, target)
			of := t.options.Rules
			of.Profiles = target.Profiles
			o.Profiles = of.rules(is).Profiles
			list := t.targets.judge(ctx, r.Variants, target, o)
			if !slices.Contains(o.Disable, codeVariantGap) {
				list = append(list, missing(s, r.Variants, "the params of the target")...)
			}
			is.Snapshot = s.Snapshot
			is.Add(list)
			errs = append(errs, is.ask(ctx, of, bootstrap, t.options.Path))
		}
		r.Targets = append(r.Targets, TargetResult{target, is})
	}
	r.MergeTargets()
	return errors.Join(errs...)
}

// For returns the result of a target, or r if r has no such target.
func (r *Result) For(target string) *Result {
	for _, t := range r.Targets {
		if t.Name == target {
			return t.Result
		}
	}
	return r
}

// Copy returns a copy of r without its targets. Findings that are added to the copy are not added to r.
func (r *Result) Copy() *Result {
	is := *r
	is.Diagnostics, is.Targets = slices.Clone(r.Diagnostics), nil
	return &is
}

// Own returns the findings that only a part of the targets has.
func (r *Result) Own() diag.List {
	return r.Diagnostics.Without(r.Shared)
}

// OtherTarget returns the finding for the targets that are not published because target name is refused. why is the
// reason, and findings are the findings of target name.
func OtherTarget(name, why string, findings diag.List) diag.Diagnostic {
	d := diag.Diagnostic{
		Code: codeOtherTarget.Name, Message: fmt.Sprintf("target %s is refused, and so are all: %s", name, why),
		Help: "correct that one, or leave out --all-or-nothing",
	}
	if len(findings) > 0 {
		worst := slices.MinFunc(findings, func(a, b diag.Diagnostic) int { return cmp.Compare(a.Severity, b.Severity) })
		d.Position, d.Sensitive = worst.Position, worst.Sensitive
	}
	return d
}

// Refuse adds a finding to r. Overrides and comments do not change the finding, so that an error makes r invalid.
func (r *Result) Refuse(d diag.Diagnostic) { r.add(diag.List{d}) }

// MergeTargets replaces the findings of r by those of its targets, without repetitions. Unless all targets have a
// finding, its message names the affected targets.
func (r *Result) MergeTargets() {
	if len(r.Targets) == 0 {
		return
	}
	var found diag.Owned
	for _, t := range r.Targets {
		found.Add(t.Diagnostics)
	}
	var merged diag.List
	r.Shared = nil
	for _, f := range found.List() {
		d := f.Diagnostic
		switch len(f.Owners) {
		case len(r.Targets):
			r.Shared = append(r.Shared, d)
		case 1:
			d.Message += "; this concerns target " + r.Targets[f.Owners[0]].Name
		default:
			var names []string
			for _, i := range f.Owners {
				names = append(names, r.Targets[i].Name)
			}
			d.Message += "; this concerns targets " + diag.Few(names, mostTargetsNamed)
		}
		merged = append(merged, d)
	}
	r.Keep(merged)
	for _, t := range r.Targets {
		t.Shared = r.Shared
	}
}

// alike gives each target the findings of r, if the targets have no results yet.
func (r *Result) alike(targets []Target) {
	if len(r.Targets) > 0 {
		return
	}
	for _, t := range targets {
		r.Targets = append(r.Targets, TargetResult{t, r.Copy()})
	}
	r.MergeTargets()
}

// mostTargetsNamed is the largest number of targets that a message names.
const mostTargetsNamed = 5
