package history_test

import (
	"fmt"
	"log"
	"os"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"xdspub/render/history"
	"xdspub/render/publish"
	"xdspub/xds"
)

// A Store records what is published. A History finds what was out at a time.
func Example() {
	out, err := os.MkdirTemp("", "xdspub")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(out)
	dir, err := publish.Open(out, publish.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer dir.Close()

	store := history.Open(dir, history.Options{Keep: 10})
	for hour, name := range []string{"blue", "green"} {
		s := xds.NewSnapshot([]*xds.Resource{xds.ResourceOf(xds.Key{Type: xds.Cluster, Name: name}, &clusterv3.Cluster{Name: name})})
		at := time.Date(2026, 3, 4, 13+hour, 0, 0, 0, time.UTC)
		if _, err := store.Record(history.Entry{Time: at, Command: "render", Snapshot: s.ID()}, s); err != nil {
			log.Fatal(err)
		}
	}

	h, err := history.Read(out)
	if err != nil {
		log.Fatal(err)
	}
	defer h.Close()
	item, err := h.At(time.Date(2026, 3, 4, 13, 30, 0, 0, time.UTC))
	if err != nil {
		log.Fatal(err)
	}
	s, err := h.Load(item.ID, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(item.Time.Format(time.Kitchen), s.Of(xds.Cluster)[0].Name)
	// Output:
	// 1:00PM blue
}
