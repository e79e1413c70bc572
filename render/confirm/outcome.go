package confirm

import (
	"context"
	"fmt"
	"time"

	"xdspub/diag"
	"xdspub/envoy"
	"xdspub/event"
	"xdspub/xds"
)

// logOutcome logs the answers of the Envoys to a step.
func (e *Envoys) logOutcome(step string, o envoy.Outcome) {
	switch log := e.options.Log; o.Verdict {
	case envoy.Confirmed:
		log.Write(event.StepConfirmed{Step: step, Answering: o.Answering, Envoys: len(o.Envoys)})
	case envoy.RefusedByQuorum:
		log.Write(event.StepRefused{Step: step, Answering: o.Answering, Envoys: len(o.Envoys)})
	default:
		log.Write(event.StepUnconfirmed{Step: step, Answering: o.Answering, Envoys: len(o.Envoys)})
	}
	for _, of := range o.Envoys {
		for _, s := range of.States {
			if s.State != envoy.Acked {
				e.options.Log.Write(notApplied(of.URL, s, true))
			}
		}
		if len(of.NotWarm) > 0 {
			e.options.Log.Write(event.ClustersWarming{Envoy: of.URL, Clusters: of.NotWarm})
		}
	}
}

// notApplied returns the event of a published file that an Envoy does not run.
func notApplied(url string, s envoy.Status, withinChange bool) event.FileNotApplied {
	return event.FileNotApplied{
		WithinChange: withinChange, Envoy: url, File: s.File, State: s.State.String(),
		ExpectedVersion: s.Version, RunningVersion: s.Runs,
	}
}

// refusals returns the Envoys' reasons as findings, at the position of the resource if known. If an Envoy has
// no reason, refusals adds the findings of Options.Reasons.
func (c *Change) refusals(ctx context.Context, o envoy.Outcome) diag.List {
	var list diag.List
	silent := false
	for _, e := range o.Envoys {
		for _, r := range e.Refusals {
			list = append(list, c.refused(e.URL, r))
			silent = silent || r.Message == ""
		}
	}
	if silent && c.options.Reasons != nil && c.snapshot != nil {
		list = append(list, c.reasons(ctx)...)
	}
	return list.Sort()
}

// longestReason bounds the search for a reason: what was rejected is put back only after it.
const longestReason = 10 * time.Second

// reasons returns why another Envoy refuses the Snapshot.
func (c *Change) reasons(ctx context.Context) diag.List {
	ctx, cancel := context.WithTimeout(ctx, longestReason)
	defer cancel()
	list, err := c.options.Reasons(ctx, c.snapshot)
	if err == nil && len(list) > 0 {
		return list
	}
	d := diag.Diagnostic{Code: codeRefusedByEnvoy.Name, Severity: diag.Info, Position: diag.Position{File: c.options.Source}}
	if d.Message = "the Envoy of --envoy takes the resources: look for the reason in what the other one runs, such as a port in use"; err != nil {
		d.Message = "the Envoy of --envoy gives no reason either: " + err.Error()
	}
	return diag.List{d}
}

func (c *Change) refused(url string, r envoy.Refusal) diag.Diagnostic {
	d := diag.Diagnostic{Position: diag.Position{File: c.options.Source}}
	if t := xds.TypeOfAPI(r.API); t != nil && r.Resource != "" {
		d.Resource = diag.Resource{Type: t.URL(), Name: r.Resource}
		if res := c.resource(t, r.Resource); res != nil {
			d = res.Diagnostic(codeRefusedByEnvoy.Name, "", "")
		}
	}
	d.Code, d.Severity = codeRefusedByEnvoy.Name, codeRefusedByEnvoy.Severity
	what := r.API
	if r.Resource != "" {
		what = fmt.Sprintf("%s %q", r.API, r.Resource)
	}
	d.Message = fmt.Sprintf("Envoy %s rejected %s: %s", url, what, r.Message)
	d.Help = "correct the resource; or remove the cause, and send the watch SIGHUP or run xdspub render --retry-held"
	if r.Message == "" {
		d.Message = fmt.Sprintf("Envoy %s rejected %s without a reason", url, what)
		d.Help = "use --envoy-log FILE to show the reason from Envoy's log here"
	}
	return d
}

// resource returns the resource in the source tree, or nil.
func (c *Change) resource(t *xds.Type, name string) *xds.Resource {
	if c.snapshot == nil {
		return nil
	}
	return c.snapshot.Lookup(t, name)
}
