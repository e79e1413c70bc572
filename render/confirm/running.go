package confirm

import (
	"context"
	"strconv"

	"xdspub/envoy"
	"xdspub/event"
	"xdspub/xds"
)

// Running is an Envoy's state of the published files while no file moves.
type Running struct {
	URL string
	// Err is why that is not known.
	Err error
	// Starting means that the Envoy has not read all files yet.
	Starting bool
	// Files is how many files the Envoy is subscribed to.
	Files int
	// NotApplied are the files that the Envoy does not run, and the listeners that the Envoy refused.
	NotApplied []event.FileNotApplied
}

// Running asks each Envoy what it runs of the published files.
func (e *Envoys) Running(ctx context.Context) ([]Running, error) {
	if !e.Asked() {
		return nil, nil
	}
	subs, err := e.subscriptions()
	if err != nil {
		return nil, err
	}
	var list []Running
	for _, p := range e.options.Fleet.ProbeInDetail(ctx, subs) {
		list = append(list, runningOf(p))
	}
	return list, nil
}

func runningOf(p envoy.DetailedProbe) Running {
	r := Running{URL: p.URL, Err: p.Err}
	if r.Err == nil {
		r.Err = p.ExcludedStats()
	}
	if r.Err != nil {
		return r
	}
	r.Starting = p.State == "PRE_INITIALIZING" || p.State == "INITIALIZING"
	files := make(map[string]bool)
	for _, s := range p.States {
		if s.StatPrefix == "" {
			continue // this Envoy has no subscription to the file
		}
		files[s.File] = true
		if reasons := p.Refused; s.API == xds.Listener.API && len(reasons) > 0 {
			s.State = envoy.Refused
			for _, refused := range reasons {
				not := notApplied(p.URL, s, false)
				not.Error = refused.API + " " + strconv.Quote(refused.Resource) + ": " + refused.Message
				r.NotApplied = append(r.NotApplied, not)
			}
		} else if s.State != envoy.Acked {
			r.NotApplied = append(r.NotApplied, notApplied(p.URL, s, false))
		}
	}
	r.Files = len(files)
	return r
}
