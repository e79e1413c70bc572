package serve_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"xdspub/serve/cache"
	"xdspub/tools/envoytest"
)

// alone is a listener that an Envoy rejects if another listener has its address.
const alone = `
- {"@type": type.googleapis.com/envoy.config.listener.v3.Listener, name: alone, address: {socket_address: {address: 127.0.0.1, port_value: %d}}, filter_chains: [{filters: [{name: tcp, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy, stat_prefix: s, cluster: blue}}]}]}
`

// own is a static listener at the address of alone. Two Envoys of a machine may open the same port, because
// of SO_REUSEPORT.
const own = `  listeners: [{name: own, address: {socket_address: {address: 127.0.0.1, port_value: %d}}, filter_chains: [{filters: [{name: tcp, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy, stat_prefix: s, cluster: xds_cluster}}]}]}]`

// TestQuorumOfEnvoys has one of two Envoys with the same node id reject a listener. The quorum decides
// whether the snapshot stays or is taken back from both.
func TestQuorumOfEnvoys(t *testing.T) {
	for _, k := range kinds[:2] {
		t.Run(string(k.kind), func(t *testing.T) {
			c := cache.New(cache.Options{Cluster: "xds_cluster"})
			socket := listen(t, c)
			up := envoytest.NewUpstream(t, "blue")
			in, port := envoytest.FreePort(t), envoytest.FreePort(t)
			before := fmt.Sprintf(clusterTo, "blue", up.Port()) + fmt.Sprintf(listenerAt, "in", in, "127.0.0.1") + fmt.Sprintf(routeTo, "blue")
			if err := c.Publish(t.Context(), parse(t, before)); err != nil {
				t.Fatal(err)
			}
			address := "pipe: {path: " + socket + "}"
			one, other := start(t, k, address, ""), start(t, k, address, fmt.Sprintf(own, port))
			synced := fmt.Sprintf("edge %s, CDS SYNCED, EDS SYNCED, LDS SYNCED, RDS SYNCED", k.kind)
			eventually(t, c, synced+"; "+synced)

			then := before + fmt.Sprintf(alone, port)
			confirm := func(quorum string) cache.Answers {
				t.Helper()
				a, err := c.Confirm(t.Context(), parse(t, then), cache.Confirmation{Quorum: quorumOf(t, quorum), Timeout: time.Minute})
				if err != nil {
					t.Fatal(err)
				}
				return a
			}
			a := confirm("all")
			if !a.Refused || !a.TakenBack || a.Concerned != 2 || a.Rejected != 1 || len(a.Findings) != 1 {
				t.Fatalf("%+v", a)
			}
			if text := a.Findings[0].String(); !strings.HasPrefix(text, `tree.yaml:`) || !strings.Contains(text, `rejected LDS "alone": `) || !strings.Contains(text, "duplicate address") {
				t.Error(text)
			}
			eventually(t, c, synced+"; "+synced)
			for _, envoy := range []*envoytest.Envoy{one, other} {
				envoytest.Eventually(t, patience, "the listener is gone", func() (bool, string) {
					listeners := envoy.Admin(t, "/listeners")
					return strings.Contains(listeners, "in::") && !strings.Contains(listeners, "alone::"), listeners
				})
			}
			// With the quorum any, the snapshot stays.
			if a = confirm("any"); a.Refused || a.TakenBack || a.Acknowledged == 0 {
				t.Fatalf("%+v", a)
			}
			envoytest.Eventually(t, patience, "one Envoy has it", func() (bool, string) {
				text := textOf(c.Clients())
				return strings.Count(text, "LDS SYNCED") == 1 && strings.Count(text, "LDS REJECTED") == 1, text
			})
		})
	}
}

// TestQuorumOfREST checks that an Envoy over REST confirms a snapshot, and that the server takes back a
// snapshot that the Envoy rejects.
func TestQuorumOfREST(t *testing.T) {
	k := allKinds[len(kinds)]
	c := cache.New(cache.Options{Cluster: "xds_cluster"})
	address := k.listen(t, c)
	up := envoytest.NewUpstream(t, "blue")
	in, port := envoytest.FreePort(t), envoytest.FreePort(t)
	before := fmt.Sprintf(clusterTo, "blue", up.Port()) + fmt.Sprintf(listenerAt, "in", in, "127.0.0.1") + fmt.Sprintf(routeTo, "blue")
	if err := c.Publish(t.Context(), parse(t, before)); err != nil {
		t.Fatal(err)
	}
	start(t, k, address, fmt.Sprintf(own, port))
	const synced = "edge rest, CDS SYNCED, EDS SYNCED, LDS SYNCED, RDS SYNCED"
	eventually(t, c, synced)
	confirm := func(text string) cache.Answers {
		t.Helper()
		a, err := c.Confirm(t.Context(), parse(t, text), cache.Confirmation{Quorum: quorumOf(t, "all"), Timeout: 5 * time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	if a := confirm(before + fmt.Sprintf(alone, port)); !a.TakenBack || a.Concerned != 1 || a.Rejected != 1 || len(a.Findings) != 1 {
		t.Fatalf("%+v", a)
	}
	eventually(t, c, synced)
	more := before + fmt.Sprintf(listenerAt, "more", envoytest.FreePort(t), "127.0.0.1")
	if a := confirm(more); a.Refused || a.Concerned != 1 || a.Acknowledged != 1 {
		t.Fatalf("%+v", a)
	}
	eventually(t, c, synced)
}
