package serve_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"xdspub/serve"
	"xdspub/serve/cache"
)

// TestRestore checks that Restore waits for no client, even with a quorum of all. The next snapshot is a
// change of the restored one: a dropped cluster stays until its trim.
func TestRestore(t *testing.T) {
	s := run(t, serve.Options{Confirm: &cache.Confirmation{Quorum: quorumOf(t, "all"), Timeout: time.Hour}})
	restore := func(text string) {
		t.Helper()
		if err := s.Restore(within(t), parse(t, text)); err != nil {
			t.Fatal(err)
		}
	}
	restore(oneCluster)
	silent := open(t, dial(t, s.tcp, nil))
	answered(t, silent)
	restore(strings.ReplaceAll(oneCluster, "web", "api"))
	var names []string
	for _, any := range answered(t, open(t, dial(t, s.tcp, nil))).Resources {
		var c clusterv3.Cluster
		if err := proto.Unmarshal(any.Value, &c); err != nil {
			t.Fatal(err)
		}
		names = append(names, c.GetName())
	}
	if got := strings.Join(names, " "); got != "api web" {
		t.Errorf("clients get %q", got)
	}
	removed, _, err := s.Trim(t.Context(), time.Now().Add(time.Second))
	if err != nil || removed != 1 || len(s.Served().All()) != 1 {
		t.Errorf("removed %d: %v", removed, err)
	}
}
