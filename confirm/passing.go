package confirm

import (
	"context"
	"strings"
	"time"

	dynamicmodulesv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/dynamic_modules/v3"
	wasmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/wasm/v3"

	"xdspub/envoy"
	"xdspub/publish"
	"xdspub/xds"
)

// Envoy's reasons for the rejection of a resource whose code it fetches. The first one says that a
// fetch is under way. The second one is the same for all faults of a Wasm plugin.
const (
	moduleNotCached = "Remote module not cached; background fetch in progress"
	wasmNotCreated  = "Unable to create Wasm plugin"
)

// firstPause and longestPause bound the time between two offers of a step. Each pause is twice the
// one before.
const (
	firstPause   = 500 * time.Millisecond
	longestPause = 15 * time.Second
)

// pause returns the time after which a refused step is offered again. It is 0 if Envoy will
// refuse the step again, or if the next offer would come later than one ack timeout after the
// first refusal.
func (c *Change) pause(ctx context.Context, s publish.Step, o envoy.Outcome) time.Duration {
	if c.offered != s.Name {
		c.offered, c.next, c.until = s.Name, firstPause, time.Now().Add(c.options.Fleet.AckTimeout())
	}
	if c.snapshot == nil || time.Now().Add(c.next).After(c.until) || !c.passes(ctx, s, o) {
		return 0
	}
	pause := c.next
	c.next = min(2*c.next, longestPause)
	return pause
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

// fetched reports whether a refusal is, or may be, of code that Envoy has begun to fetch.
func (c *Change) fetched(ctx context.Context, s publish.Step, r envoy.Refusal) bool {
	switch {
	case strings.HasPrefix(r.Message, moduleNotCached):
		return true
	case r.Message != "" && !strings.HasPrefix(r.Message, wasmNotCreated):
		return false
	}
	for _, f := range s.Write {
		for _, resource := range c.out.Resources(f) {
			if (r.Resource == "" || r.Resource == resource.Name) && rejectedUntilFetched(ctx, resource, r.Message == "") {
				return true
			}
		}
	}
	return false
}

// rejectedUntilFetched reports whether Envoy rejects a resource until it has fetched the Wasm code
// of the resource, or a dynamic module if modules is set.
func rejectedUntilFetched(ctx context.Context, r *xds.Resource, modules bool) (found bool) {
	err := r.Walk(ctx, func(n *xds.Node) {
		switch m := n.Message.(type) {
		case *wasmv3.VmConfig:
			found = found || m.GetNackOnCodeCacheMiss() && m.GetCode().GetRemote() != nil
		case *dynamicmodulesv3.DynamicModuleConfig:
			found = found || modules && m.GetNackOnCacheMiss() && m.GetModule().GetRemote() != nil
		}
	})
	return found && err == nil
}
