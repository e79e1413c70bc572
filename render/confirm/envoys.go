// Package confirm asks Envoys whether they accept the published files. It knows which Envoy is
// subscribed to which file of an output directory, and which version each is to run after a step.
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
	// Fleet has the Envoys that confirm each step; nil where none is asked.
	Fleet *envoy.Fleet
	// Instead makes what confirms each step in place of Envoys, where Fleet is nil. of has
	// the ids that its refusals go on record with. nil where nothing does.
	Instead func(of publish.Refusal) publish.Confirmer
	// Source is the path of the source tree: findings on resources that it does not have
	// stand there.
	Source string
	// Reasons returns why an Envoy refuses a Snapshot, as findings on its resources, where those that
	// rejected it do not say so; nil where nobody knows.
	Reasons func(context.Context, *xds.Snapshot) (diag.List, error)
	// Retried is called when Envoys refuse a step that they are offered again, and with nil when they no longer
	// refuse the step; nil is not called.
	Retried func(*publish.RefusedError)
	// Log gets the log lines; nil discards them.
	Log *event.Log
}

// Envoys are the Envoys that read one output directory. Not for concurrent use.
type Envoys struct {
	options Options
	out     *published.Reader
}

// New returns the Envoys of an output directory.
func New(out *published.Reader, o Options) *Envoys {
	return &Envoys{options: o, out: out}
}

// Asked reports whether there are Envoys to ask.
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

// NotRunning returns the published files that an Envoy does not run, though it is subscribed to
// them. Where no Envoy is asked there are none.
func (e *Envoys) NotRunning(ctx context.Context) (files []string, err error) {
	list, err := e.Running(ctx)
	for _, r := range list {
		for _, not := range r.NotApplied {
			files = append(files, not.File)
		}
	}
	return files, err
}
