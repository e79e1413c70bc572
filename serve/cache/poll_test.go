package cache_test

import (
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"xdspub/diag"
	"xdspub/serve/cache"
	"xdspub/source/load"
	"xdspub/xds"
)

// slow is an Origin that takes until the test lets it end to find a position.
type slow struct {
	xds.Origin
	asked, end chan struct{}
}

func (s slow) Range(path xds.Path) diag.Range {
	close(s.asked)
	<-s.end
	return s.Origin.Range(path)
}

// TestPlacesAside checks that finding the position of a refused resource doesn't delay other REST clients.
func TestPlacesAside(t *testing.T) {
	tree := load.Parse(load.Input{Name: "tree.yaml", Format: "yaml", Data: []byte(`{"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: web}`)})
	at := slow{asked: make(chan struct{}), end: make(chan struct{})}
	web := tree.Snapshot().All()[0]
	at.Origin = web.Origin
	web.Origin = at
	c := cache.New(cache.Options{})
	if err := c.Publish(t.Context(), xds.NewSnapshot([]*xds.Resource{web})); err != nil {
		t.Fatal(err)
	}
	reader := c.Reader()
	ask := func(node, version, refused string) *cache.Poll {
		poll, _, err := reader.Poll(cache.Question{
			Client: node, Key: "all", Node: &corev3.Node{Id: node}, Type: xds.Cluster, All: true,
			Version: version, Refused: refused != "", Reason: refused,
		})
		if err != nil {
			t.Error(err)
		}
		return poll
	}
	poll := ask("one", "", "")
	now, _, _ := poll.Watch()
	if v := poll.Judge(now.Version(xds.Cluster), now); !v.Send {
		t.Fatal(v)
	}
	poll.Sent(now.Version(xds.Cluster))
	refused := make(chan struct{})
	go func() {
		ask("one", "", `bad cluster "web"`)
		close(refused)
	}()
	<-at.asked
	ask("other", "", "")
	if is := c.Clients(); len(is) != 2 {
		t.Errorf("%+v", is)
	}
	close(at.end)
	<-refused
	for _, is := range c.Clients() {
		if r := is.Subscriptions[0].Refusal; is.Node == "one" && (r == nil || len(r.Findings) != 1 || r.Findings[0].Position.File != "tree.yaml") {
			t.Errorf("%+v", r)
		}
	}
}
