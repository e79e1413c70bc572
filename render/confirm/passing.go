package confirm

import (
	"context"
	"time"

	"xdspub/envoy"
	"xdspub/render/publish"
	"xdspub/validate/transition"
	"xdspub/xds"
)

// pause returns the time after which a refused step is offered again. It is 0 if Envoy will
// refuse the step again, or if the next offer would come later than one ack timeout after the
// first refusal.
func (c *Change) pause(ctx context.Context, s publish.Step, o envoy.Outcome) time.Duration {
	if c.offered != s.Name {
		c.offered, c.offers = s.Name, transition.Offers{}
	}
	if c.snapshot == nil || !c.passes(ctx, s, o) {
		return 0
	}
	return c.offers.Pause(c.options.Fleet.AckTimeout())
}

// retries tells Options.Retried that Envoys refuse a step that they are offered again, or nil.
func (c *Change) retries(refused *publish.RefusedError) {
	if c.options.Retried != nil {
		c.options.Retried(refused)
	}
}

// passes reports whether Envoy may accept the refused files of a step later: each refusal is of a
// resource whose code Envoy has begun to fetch.
func (c *Change) passes(ctx context.Context, s publish.Step, o envoy.Outcome) bool {
	some := false
	for _, e := range o.Envoys {
		for _, r := range e.Refusals {
			if !c.fetched(ctx, s, r) {
				return false
			}
			some = true
		}
	}
	return some
}

// fetched reports whether a refusal may be due to code that Envoy has begun to fetch.
func (c *Change) fetched(ctx context.Context, s publish.Step, r envoy.Refusal) bool {
	var known []*xds.Resource
	for _, f := range s.Write {
		for _, resource := range c.out.Resources(f) {
			if r.Resource == "" || r.Resource == resource.Name {
				known = append(known, resource)
			}
		}
	}
	for _, resource := range append(known, nil) {
		if transition.UntilFetched(ctx, resource, r.Message) {
			return true
		}
	}
	return false
}
