package serve_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"xdspub/serve/cache"
	"xdspub/tools/envoytest"
)

// TestExchangedOverRestart starts another server, whose snapshot exchanges the addresses of two listeners of
// an Envoy. The other server knows nothing of the first server. In the end the Envoy must have both listeners
// at their new addresses.
func TestExchangedOverRestart(t *testing.T) {
	for _, k := range kinds[:2] {
		t.Run(k.String(), func(t *testing.T) {
			up := envoytest.NewUpstream(t, "blue")
			one, other := envoytest.FreePort(t), envoytest.FreePort(t)
			socket := filepath.Join(t.TempDir(), "xds.sock")
			serveAt := func(a, b int) (*cache.Cache, func()) {
				c := cache.New(cache.Options{})
				text := fmt.Sprintf(clusterTo, "blue", up.Port()) + fmt.Sprintf(listenerAt, "a", a, "127.0.0.1") + fmt.Sprintf(listenerAt, "b", b, "127.0.0.1") + fmt.Sprintf(routeTo, "blue")
				if err := c.Publish(t.Context(), parse(t, text)); err != nil {
					t.Fatal(err)
				}
				return c, listenAt(t, c, socket)
			}
			c, stop := serveAt(one, other)
			envoy := start(t, k, "pipe: {path: "+socket+"}", "")
			synced := fmt.Sprintf("edge %s, CDS SYNCED, EDS SYNCED, LDS SYNCED, RDS SYNCED", k.kind)
			eventually(t, c, synced)
			stop()
			c, _ = serveAt(other, one)
			envoytest.Eventually(t, 3*time.Minute, "the listeners have exchanged their addresses", func() (bool, string) {
				listeners, is := envoy.Admin(t, "/listeners"), textOf(c.Clients())
				return is == synced && strings.Contains(listeners, fmt.Sprintf("a::127.0.0.1:%d", other)) && strings.Contains(listeners, fmt.Sprintf("b::127.0.0.1:%d", one)), is + "\n" + listeners
			})
		})
	}
}
