package envoy

import (
	"context"
	"strings"

	"xdspub/event"
)

// explain adds the reasons for refusals to the outcome of each Envoy. The admin interface has the reasons for
// listeners, and FleetOptions.Logs have the others.
func (w *AckWait) explain(ctx context.Context, o *Outcome) {
	var logged []Refusal
	for _, log := range w.fleet.o.Logs {
		list, err := log.Refusals()
		if err != nil {
			w.fleet.o.Log.Write(event.ReasonMissing{Error: err})
		}
		logged = append(logged, list...)
	}
	for i, p := range w.peers {
		e := &o.Envoys[i]
		for _, s := range e.States {
			if s.State != Refused {
				continue
			}
			var said []Refusal
			if s.API == "LDS" {
				var err error
				if said, err = p.admin.Refusals(ctx, w.started); err != nil {
					w.fleet.o.Log.Write(event.ReasonMissing{Envoy: e.URL, Error: err})
				}
			}
			if len(said) == 0 {
				said = about(s.Subscription, logged)
			}
			e.Refusals = append(e.Refusals, said...)
		}
	}
}

// about returns the logged refusals that may concern a subscription. Without any, it returns a Refusal without a
// Message.
func about(s Subscription, logged []Refusal) []Refusal {
	var said []Refusal
	for _, r := range logged {
		switch {
		case r.API != "" && r.API != s.API,
			r.Resource != "" && s.Name != "" && r.Resource != s.Name,
			r.File != "" && !strings.HasSuffix(r.File, "/"+s.File):
			continue
		}
		r.API = s.API
		if r.Resource == "" {
			r.Resource = s.Name
		}
		said = append(said, r)
	}
	if len(said) == 0 {
		said = []Refusal{{API: s.API, Resource: s.Name}}
	}
	return said
}
