package transition

import (
	"context"
	"strings"
	"time"

	dynamicmodulesv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/dynamic_modules/v3"
	wasmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/wasm/v3"

	"xdspub/xds"
)

// The reasons with which Envoy rejects a resource while it fetches code for the resource. moduleNotCached says that
// a fetch is under way. wasmNotCreated stands for every fault of a Wasm plugin.
const (
	moduleNotCached = "Remote module not cached; background fetch in progress"
	wasmNotCreated  = "Unable to create Wasm plugin"
)

// UntilFetched reports whether Envoy may accept a rejected resource later, because Envoy has begun to fetch the
// code of a filter. reason is Envoy's reason for the rejection; empty if Envoy gives none. r is nil if the rejected
// resource is unknown.
func UntilFetched(ctx context.Context, r *xds.Resource, reason string) (found bool) {
	switch {
	case strings.HasPrefix(reason, moduleNotCached):
		return true
	case r == nil || reason != "" && !strings.HasPrefix(reason, wasmNotCreated):
		return false
	}
	err := r.Walk(ctx, func(n *xds.Node) {
		switch m := n.Message.(type) {
		case *wasmv3.VmConfig:
			found = found || m.GetNackOnCodeCacheMiss() && m.GetCode().GetRemote() != nil
		case *dynamicmodulesv3.DynamicModuleConfig:
			found = found || reason == "" && m.GetNackOnCacheMiss() && m.GetModule().GetRemote() != nil
		}
	})
	return found && err == nil
}

// firstPause and longestPause are the bounds of the time between two offers. Each pause is twice as long as the
// previous pause.
const (
	firstPause   = 500 * time.Millisecond
	longestPause = 15 * time.Second
)

// Offers schedules the offers of a resource that Envoy rejects until it has fetched code. The zero value is for a
// resource that Envoy has not rejected yet.
type Offers struct {
	next  time.Duration
	until time.Time // zero before the first rejection
}

// Pause returns the time from a rejection until the next offer. within is the longest time from the first rejection
// to an offer: Pause returns 0 if the next offer would come later.
func (o *Offers) Pause(within time.Duration) time.Duration {
	if o.until.IsZero() {
		o.next, o.until = firstPause, time.Now().Add(within)
	}
	pause := o.next
	if time.Now().Add(pause).After(o.until) {
		return 0
	}
	o.next = min(2*o.next, longestPause)
	return pause
}
