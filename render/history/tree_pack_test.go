package history

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"xdspub/xds"
)

// clusterOf returns a cluster of a name, with a timeout.
func clusterOf(name string, seconds int) *xds.Resource {
	return xds.ResourceOf(xds.Key{Type: xds.Cluster, Name: name},
		&clusterv3.Cluster{Name: name, ConnectTimeout: durationpb.New(time.Duration(seconds) * time.Second)})
}

func mustTree(t *testing.T, s *xds.Snapshot, was *Tree) *Tree {
	t.Helper()
	tree, err := NewTree(s, was)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// TestTreePack: after random edits, Unpack of Pack has the resources and the ID of a new Tree, from any earlier Tree.
func TestTreePack(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	values := make(map[int]int) // by the number of a cluster
	var trees []*Tree
	var was *Tree
	for range 30 {
		for range r.IntN(200) {
			if n := r.IntN(500); r.IntN(3) == 0 {
				delete(values, n)
			} else {
				values[n] = r.IntN(4)
			}
		}
		var list []*xds.Resource
		for n := range 500 {
			if seconds, ok := values[n]; ok {
				list = append(list, clusterOf(fmt.Sprintf("c%03d", n), seconds))
			}
		}
		is := mustTree(t, xds.NewSnapshot(list), was)
		if fresh := mustTree(t, is.Snapshot(), nil); fresh.ID() != is.ID() {
			t.Fatal("a tree depends on the edits that led to it")
		}
		for _, base := range []*Tree{nil, was, append(trees, nil)[r.IntN(len(trees)+1)]} {
			data, err := is.Pack(base)
			if err != nil {
				t.Fatal(err)
			}
			again, err := is.Pack(base)
			if err != nil || !bytes.Equal(data, again) {
				t.Fatalf("the same change has other bytes: %v", err)
			}
			after, err := base.Unpack(data, nil)
			if err != nil || after.ID() != is.ID() || after.Snapshot().ID() != is.Snapshot().ID() {
				t.Fatalf("%v, %s and not %s", err, after.ID(), is.ID())
			}
		}
		trees, was = append(trees, is), is
	}
}

// TestPackKeepsWrappers: constraints of clients, and TTLs, survive.
func TestPackKeepsWrappers(t *testing.T) {
	varied := clusterOf("a", 1)
	varied.Meta = &discoveryv3.Resource{Name: "a", Ttl: durationpb.New(time.Minute)}
	is := mustTree(t, xds.NewSnapshot([]*xds.Resource{varied, clusterOf("b", 1)}), nil)
	data, err := is.Pack(nil)
	if err != nil {
		t.Fatal(err)
	}
	after, err := (*Tree)(nil).Unpack(data, nil)
	if err != nil || after.ID() != is.ID() || after.Snapshot().All()[0].Meta.GetTtl().AsDuration() != time.Minute {
		t.Errorf("%v: %v", err, after)
	}
}

// TestUnpackHostile: bytes that Pack has not written are an error, whatever they have.
func TestUnpackHostile(t *testing.T) {
	base := mustTree(t, xds.NewSnapshot([]*xds.Resource{clusterOf("a", 1)}), nil)
	is := mustTree(t, xds.NewSnapshot([]*xds.Resource{clusterOf("a", 2)}), nil)
	data, err := is.Pack(base)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (*Tree)(nil).Unpack(data, nil); !errors.Is(err, ErrBase) {
		t.Errorf("of other resources: %v", err)
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	var plain bytes.Buffer
	if _, err := plain.ReadFrom(z); err != nil {
		t.Fatal(err)
	}
	line, response, _ := strings.Cut(plain.String(), "\n")
	for name, text := range map[string]string{
		"unexpected end of JSON": "",
		"the resources have":     strings.Replace(line, `"tree":"`, `"tree":"00`, 1) + "\n" + response,
		"the change removes":     strings.Replace(line, `{`, `{"removed":["CDS/a"],`, 1) + "\n" + response,
		"whose type is unknown":  strings.Replace(line, `{`, `{"removed":["XDS/a"],`, 1) + "\n" + response,
		"proto":                  line + "\n" + response[:len(response)-1],
		"is not a valid":         line + "\n" + strings.ReplaceAll(response, "cluster.v3.Cluster", "cluster.v3.Nothing"),
	} {
		if _, err := base.Unpack(zipped(text), nil); err == nil {
			t.Errorf("%s: no error", name)
		} else {
			t.Logf("%s: %v", name, err)
		}
	}
	if _, _, err := openPack(zipped(strings.Repeat(" ", 1001)), 1000); err == nil || !strings.Contains(err.Error(), "more than 1000 bytes") {
		t.Errorf("a bomb: %v", err)
	}
	if _, err := base.Unpack([]byte("none"), nil); err == nil {
		t.Error("no gzip: no error")
	}
}

func zipped(text string) []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	_, _ = z.Write([]byte(text))
	_ = z.Close()
	return b.Bytes()
}
