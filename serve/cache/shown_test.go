package cache_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"xdspub/serve/cache"
	"xdspub/xds"
	"xdspub/xds/clients"
)

// manyClusters returns a Cache with ten clusters.
func manyClusters(t *testing.T) *cache.Cache {
	t.Helper()
	var list []*xds.Resource
	for i := range 10 {
		r, err := xds.NewResource(&clusterv3.Cluster{Name: fmt.Sprint("web-", i)}, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
	c := cache.New(cache.Options{})
	if err := c.Publish(t.Context(), xds.NewSnapshot(list)); err != nil {
		t.Fatal(err)
	}
	return c
}

// bytesOf returns the size of a list of clients as JSON, in bytes.
func bytesOf(t *testing.T, list []clients.Client) int {
	t.Helper()
	text, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	return len(text)
}

// TestDetailsAreBounded checks that all clients with long NACK reasons are listed, the first ones with their
// reasons. The memory of such clients is bounded.
func TestDetailsAreBounded(t *testing.T) {
	c := manyClusters(t)
	before := heap()
	var fakes []*fake
	for i := range 500 { // 50 KB of text each
		f := newFake(t, c, fmt.Sprintf("node-%05d", i))
		f.ask("", "")
		f.hear("1")
		f.ask("1", strings.Repeat("x", 4000))
		fakes = append(fakes, f)
	}
	list := c.Clients()
	if n := bytesOf(t, list); len(list) != len(fakes) || n > 20<<20 {
		t.Errorf("%d clients, %d bytes", len(list), n)
	}
	detailed := 0
	for i, is := range list {
		if is.Count(clients.Rejected) != 1 || is.Subscriptions[0].Refusal == nil {
			t.Fatalf("%d: %+v", i, is)
		}
		if len(is.Subscriptions[0].Refusal.Findings) == 10 && detailed == i {
			detailed++
		}
	}
	if detailed < 300 || detailed == len(list) {
		t.Errorf("%d clients have details", detailed)
	}
	list = nil
	for _, f := range fakes {
		f.stream.Close()
		f.answers = nil
	}
	fakes = nil
	if list = c.Clients(); len(list) < 100 || list[len(list)-1].Node != "node-00499" {
		t.Errorf("%d clients that are gone, the last is %s", len(list), list[len(list)-1].Node)
	}
	list = nil
	heap() // heap() // the second collection empties pools
	if more := int(heap()) - int(before); more > 12<<20 {
		t.Errorf("%d bytes are remembered", more)
	}
}

// TestPollsAreBounded checks that the memory of REST clients with long NACK reasons is bounded.
func TestPollsAreBounded(t *testing.T) {
	c := manyClusters(t)
	reader := c.Reader()
	reason := strings.Repeat("x", 3500)
	for i := range 10 {
		reason += fmt.Sprintf(" web-%d", i)
	}
	ask := func(node, key, version, refused string) *cache.Poll {
		poll, _, err := reader.Poll(cache.Question{
			Client: node, Key: key, Node: &corev3.Node{Id: node}, Type: xds.Cluster, All: true,
			Version: version, Refused: refused != "", Reason: refused,
		})
		if err != nil {
			t.Fatal(err)
		}
		return poll
	}
	refuse := func(node, key string) {
		poll := ask(node, key, "", "")
		now, _, _ := poll.Watch()
		poll.Judge(now.Version(xds.Cluster), now)
		poll.Sent(now.Version(xds.Cluster))
		ask(node, key, "", reason)
	}
	before := heap()
	for i := range 1200 { // 45 KB each
		refuse(fmt.Sprint("node-", i), "all")
		refuse("one", fmt.Sprint("question-", i))
	}
	if more := int(heap()) - int(before); more > 60<<20 { // including disconnected clients
		t.Errorf("%d bytes are known", more)
	}
	found := false
	for _, is := range c.Clients() {
		found = found || is.Node == "node-1199" && is.Gone.IsZero() && len(is.Subscriptions[0].Refusal.Findings) == 10
	}
	if !found {
		t.Error("the last client is not known")
	}
}
