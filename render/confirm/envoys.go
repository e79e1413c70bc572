// Package confirm asks Envoys whether they accept the published files. Package confirm knows which Envoy
// subscribes to which file of an output directory, and the version that each Envoy should run after a step.
package confirm

import (
	"context"

	"xdspub/diag"
	"xdspub/envoy"
	"xdspub/event"
	"xdspub/render/publish"
	"xdspub/render/published"
	"xdspub/xds"
)

// Options of Envoys.
type Options struct {
	// Fleet has the Envoys that confirm each step; nil for none.
	Fleet *envoy.Fleet
	// Instead makes a Confirmer in place of Envoys if Fleet is nil. of has the ids under which refusals go on
	// record. A nil Instead means that nothing confirms.
	Instead func(of publish.Refusal) publish.Confirmer
	// Source is the path of the source tree, the place of findings on resources that the tree lacks.
	Source string
	// Reasons returns an Envoy's reasons to refuse a Snapshot as findings, for Envoys that reject without a
	// reason; nil for none.
	Reasons func(context.Context, *xds.Snapshot) (diag.List, error)
	// Retried is called when Envoys refuse a step that they are offered again, and with nil when they no longer
	// refuse the step; nil is not called.
	Retried func(*publish.RefusedError)
	// Log gets the log lines; nil discards them.
	Log *event.Log
}

// Envoys are the Envoys that read an output directory. Not for concurrent use.
type Envoys struct {
	options Options
	out     *published.Reader
}

// New returns the Envoys of an output directory.
func New(out *published.Reader, o Options) *Envoys {
	return &Envoys{options: o, out: out}
}

// Asked reports whether a fleet of Envoys is set.
func (e *Envoys) Asked() bool { return e.options.Fleet != nil }

// subscriptions returns the subscriptions of Envoys to the published files.
func (e *Envoys) subscriptions() ([]envoy.Subscription, error) {
	now := e.Change(nil, publish.Refusal{})
	if err := now.read(); err != nil {
		return nil, err
	}
	return now.running(publish.Step{})(), nil
}

// Probe asks the Envoys what they run of the published files.
func (e *Envoys) Probe(ctx context.Context) ([]envoy.Probe, error) {
	subs, err := e.subscriptions()
	if err != nil {
		return nil, err
	}
	return e.options.Fleet.Probe(ctx, subs), nil
}

// NotRunning returns the published files that an Envoy subscribes to and does not run. Without a fleet,
// NotRunning returns none.
func (e *Envoys) NotRunning(ctx context.Context) (files []string, err error) {
	list, err := e.Running(ctx)
	for _, r := range list {
		for _, not := range r.NotApplied {
			files = append(files, not.File)
		}
	}
	return files, err
}
