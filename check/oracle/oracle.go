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

// Candidate is a Snapshot that an Envoy judges.
type Candidate struct {
	Snapshot *xds.Snapshot
	// Envoy is the version whose fields xdspub knows; nil means the latest known version.
	Envoy *envoyapi.Version
	// Bootstrap is the bootstrap of the Envoy that gets the Snapshot; nil if unknown.
	Bootstrap *bootstrapv3.Bootstrap
	// Path is the file in findings that are about no single resource.
	Path string
}

// Oracle asks an Envoy repeatedly, and caches the last verdict. An Oracle is not for concurrent use.
type Oracle struct {
	envoy trial.Envoy
	limit limit
	// loads means that a throw-away Envoy also loads each Candidate that --mode validate accepts.
	loads bool
	last  *verdict // nil before the first verdict
}

// New returns an Oracle that asks e by --mode validate. New does not start e.
func New(e trial.Envoy) *Oracle { return &Oracle{envoy: e, limit: usual} }

// Shadow returns an Oracle that also starts a throw-away Envoy for each Candidate that --mode validate accepts.
// This Envoy loads the files in the form in which they would be published.
func Shadow(e trial.Envoy) *Oracle { return &Oracle{envoy: e, limit: usual, loads: true} }

// verdict is the answer of an Envoy about a Candidate.
type verdict struct {
	of      identity
	faults  []fault
	rest    trial.Answer // search.rest
	omitted []omission
}

// Judge returns the findings of the Envoy about a Candidate. It returns an error if Envoy could not be asked, or if
// ctx has ended.
func (o *Oracle) Judge(ctx context.Context, c Candidate) (diag.List, error) {
	if o.last == nil || !o.last.of.holds(o.envoy.Program, c) {
		v, err := o.ask(ctx, c)
		if err != nil {
			return nil, err
		}
		if v.rest.Hang != "" { // the machine may have been too slow: do not cache the verdict
			return v.findings(c), nil
		}
		o.last = v
	}
	return o.last.findings(c), nil
}

// Reasons returns the errors that Envoy finds in a Candidate which a running Envoy has rejected. Even the Oracle of
// New then starts a throw-away Envoy that loads the files. Reasons returns an error if Envoy could not be asked, or
// if ctx has ended.
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
