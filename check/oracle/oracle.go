// Package oracle has the user's own Envoy judge a Snapshot before the Snapshot is published. Package oracle
// makes a bootstrap that holds all resources, has Envoy judge the bootstrap by --mode validate, and finds the
// resources that Envoy refuses.
//
//	o := oracle.New(trial.Envoy{Program: "envoy"})
//	findings, err := o.Judge(ctx, oracle.Candidate{Snapshot: snapshot})
//
// After --mode validate, Shadow also has an Envoy load the files from a private directory, in the published
// form, so that Envoy reads its subscriptions, too.
//
// This Envoy opens no port, connects to nobody else, resolves no name, and writes no file. Code in resources
// does not run: package oracle omits the code or the resource. docs/validation.md lists further omissions.
package oracle

import (
	"context"
	"slices"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"

	"xdspub/diag"
	"xdspub/envoy/envoyapi"
	"xdspub/envoy/trial"
	"xdspub/xds"
)

// Candidate is what an Envoy judges.
type Candidate struct {
	Snapshot *xds.Snapshot
	// Envoy is the release whose fields are known; nil means the latest known release.
	Envoy *envoyapi.Version
	// Bootstrap is the bootstrap of the Envoy that gets the Snapshot; nil if unknown.
	Bootstrap *bootstrapv3.Bootstrap
	// Path is the place of findings about no single resource.
	Path string
}

// Oracle asks an Envoy again and again, and caches the last verdict. Not for concurrent use.
type Oracle struct {
	envoy trial.Envoy
	limit limit
	// loads means that a throw-away Envoy also loads a Candidate that --mode validate accepts.
	loads bool
	last  *verdict // nil before the first
}

// New returns an Oracle. It starts nothing yet.
func New(e trial.Envoy) *Oracle { return &Oracle{envoy: e, limit: usual} }

// Shadow returns an Oracle that also has a throw-away Envoy load what --mode validate takes, by files
// as they would be published.
func Shadow(e trial.Envoy) *Oracle { return &Oracle{envoy: e, limit: usual, loads: true} }

// verdict is what an Envoy makes of a Candidate.
type verdict struct {
	of      identity
	faults  []fault
	rest    trial.Answer // search.rest
	omitted []omission
}

// Judge returns Envoy's verdict on a Candidate. The error is not nil if Envoy could not be asked, or if ctx
// has ended.
func (o *Oracle) Judge(ctx context.Context, c Candidate) (diag.List, error) {
	if o.last == nil || !o.last.of.holds(o.envoy.Program, c) {
		v, err := o.ask(ctx, c)
		if err != nil {
			return nil, err
		}
		if v.rest.Hang != "" { // which may have been the machine
			return v.findings(c), nil
		}
		o.last = v
	}
	return o.last.findings(c), nil
}

// Reasons returns the reasons for which an Envoy that loads its files refuses a Candidate, in the manner of
// Shadow even for an Oracle of New. Reasons is for a Candidate that a running Envoy has rejected. The error is
// not nil if Envoy could not be asked, or if ctx has ended.
func (o *Oracle) Reasons(ctx context.Context, c Candidate) (diag.List, error) {
	shadow := o
	if !o.loads {
		shadow = &Oracle{envoy: o.envoy, limit: o.limit, loads: true}
	}
	list, err := shadow.Judge(ctx, c)
	return slices.DeleteFunc(slices.Clone(list), func(d diag.Diagnostic) bool { return d.Severity != diag.Error }), err
}

func (o *Oracle) ask(ctx context.Context, c Candidate) (*verdict, error) {
	f := fold(c)
	v := &verdict{of: identify(o.envoy.Program, c, f.files), omitted: f.omitted}
	s := search{envoy: o.envoy, limit: o.limit, bootstrap: f.bootstrap}
	if err := s.run(ctx, f.items); err != nil {
		return nil, err
	}
	v.faults, v.rest = s.faults, s.rest
	if !o.loads || len(v.faults) > 0 || !v.rest.Taken() {
		return v, nil
	}
	tamed := shadow{folded: f}
	tamed.snapshot, v.omitted = f.tamed()
	return v, tamed.load(ctx, o.envoy, v)
}
