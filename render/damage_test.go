package render

import (
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/proto"

	"xdspub/xds"
)

// TestDamage checks that the checks of a binary file before its publish find each changed byte and each missing
// end.
func TestDamage(t *testing.T) {
	var resources [][]byte
	for _, name := range []string{"blue", "", "green"} {
		m := &clusterv3.Cluster{Name: name, AltStatName: name}
		canonical, err := xds.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := resourceBinary(nil, m, canonical); err != nil {
			t.Fatal(err)
		}
		for i := range canonical {
			damaged := append([]byte(nil), canonical...)
			damaged[i] ^= 1
			if readsBack(m, canonical, damaged, proto.Unmarshal) == nil {
				t.Errorf("%s: byte %d is damaged, and nothing is said", name, i)
			}
			if readsBack(m, canonical, canonical[:i], proto.Unmarshal) == nil {
				t.Errorf("%s: all is missing from byte %d, and nothing is said", name, i)
			}
		}
		resources = append(resources, canonical)
	}
	data, err := responseBinary("v1", xds.Cluster.URL(), resources)
	if err != nil {
		t.Fatal(err)
	}
	for i := range data {
		damaged := append([]byte(nil), data...)
		damaged[i] ^= 1
		if holds(damaged, "v1", xds.Cluster.URL(), resources) == nil {
			t.Errorf("byte %d is damaged, and nothing is said", i)
		}
		if holds(data[:i], "v1", xds.Cluster.URL(), resources) == nil {
			t.Errorf("all is missing from byte %d, and nothing is said", i)
		}
	}
}
