// Package oracle has the user's own Envoy judge a Snapshot before anything is published. It makes
// one bootstrap of the resources, in which nothing comes from elsewhere, has Envoy judge that by
// --mode validate, and finds out which resources Envoy refuses.
//
//	o := oracle.New(trial.Envoy{Program: "envoy"})
//	findings, err := o.Judge(ctx, oracle.Candidate{Snapshot: snapshot})
//
// Shadow also has an Envoy load what --mode validate takes, from files in a private directory, as it
// would be published: then it reads what it subscribes to, too.
//
// Envoy opens no port for that, connects to nobody else, resolves no name, and writes no file. Code in
// resources is not run: it is left out, or the resource is. docs/validation.md says what else
// Envoy is not asked about.
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
	// Envoy is the version whose fields are known; nil means the latest that is known.
	Envoy *envoyapi.Version
	// Bootstrap is that of the Envoy that is to take the Snapshot; nil where it is not known.
	Bootstrap *bootstrapv3.Bootstrap
	// Path is where findings stand that are about no one resource.
	Path string
}

// Oracle is an Envoy that is asked again and again. It keeps its last verdict. Not for concurrent
// use.
type Oracle struct {
	envoy trial.Envoy
	limit limit
	// loads says that a throw-away Envoy loads what --mode validate takes.
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

// Judge returns what Envoy makes of a Candidate. An error means that Envoy could not be asked, or
// that ctx has ended.
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

// Reasons returns why an Envoy that loads its files refuses a Candidate, as that of Shadow does, also
// where that of New takes it. It is for a Candidate that a running Envoy has rejected. An error means that
// Envoy could not be asked, or that ctx has ended.
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
