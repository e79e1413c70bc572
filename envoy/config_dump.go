package envoy

import (
	"context"
	"net/url"
	"time"
)

const (
	// dumpTimeout is for a dump of all that an Envoy has: one of 10,000 clusters makes it within
	// seconds, and serves requests meanwhile.
	dumpTimeout = 2 * time.Minute
	// maxConfigDump is beyond what an Envoy of 10,000 clusters has, and what load reads.
	maxConfigDump = 128 << 20
)

// ConfigDump returns what the Envoy has of everything, its endpoints too, as JSON.
func (a *Admin) ConfigDump(ctx context.Context) ([]byte, error) {
	s := a.session()
	defer s.close()
	s.timeout = dumpTimeout
	return s.get(ctx, configDump, url.Values{"include_eds": {""}}, maxConfigDump)
}
