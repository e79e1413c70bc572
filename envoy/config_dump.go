package envoy

import (
	"context"
	"net/url"
	"time"
)

const (
	// dumpTimeout bounds one dump, from the connection to the last byte. An Envoy of 10,000 clusters
	// writes its dump within seconds.
	dumpTimeout = 30 * time.Second
	// maxConfigDump exceeds the dump of an Envoy with 10,000 clusters. xdspub reads no larger file, either.
	maxConfigDump = 128 << 20
)

// ConfigDump returns the Envoy's whole configuration with endpoints, as JSON.
func (a *Admin) ConfigDump(ctx context.Context) ([]byte, error) {
	s := a.session()
	defer s.close()
	s.timeout = dumpTimeout
	return s.get(ctx, configDump, url.Values{"include_eds": {""}}, maxConfigDump)
}
