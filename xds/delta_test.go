package xds_test

import (
	"slices"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"xdspub/xds"
)

func TestDiff(t *testing.T) {
	var (
		a      = resource(t, &clusterv3.Cluster{Name: "a"}, "")
		aAgain = resource(t, &clusterv3.Cluster{Name: "a"}, "")
		aNew   = resource(t, &clusterv3.Cluster{Name: "a", AltStatName: "new"}, "")
		b      = resource(t, &clusterv3.Cluster{Name: "b"}, "")
		c      = resource(t, &clusterv3.Cluster{Name: "c"}, "")
		l      = resource(t, &listenerv3.Listener{Name: "a"}, "")
		s      = resource(t, &tlsv3.Secret{Name: "a"}, "")
		broken = resource(t, &clusterv3.Cluster{Name: "b", AltStatName: "\xff"}, "") // can't be encoded
	)
	type list = []*xds.Resource
	for name, tt := range map[string]struct {
		old, new                list
		added, changed, removed list
	}{
		"none":                      {},
		"first":                     {nil, list{l, a}, list{a, l}, nil, nil},
		"all gone":                  {list{l, a, s}, nil, nil, nil, list{s, a, l}},
		"the same values":           {list{a, l}, list{l, a}, nil, nil, nil},
		"the same content":          {list{a}, list{aAgain}, nil, nil, nil},
		"changed":                   {list{a, l}, list{aNew, l}, nil, list{aNew}, nil},
		"one beside others":         {list{a, c}, list{a, b, c}, list{b}, nil, nil},
		"one of three goes":         {list{a, b, c}, list{a, c}, nil, nil, list{b}},
		"another of the same name":  {list{s}, list{l}, list{l}, nil, list{s}},
		"one stands before another": {list{a}, list{aNew, a}, nil, list{aNew}, nil},
		"one stands behind another": {list{a}, list{a, aNew}, nil, nil, nil},
		"it can't be encoded":       {list{b}, list{broken}, nil, list{broken}, nil},
		"nor could it before":       {list{broken}, list{b}, nil, list{b}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			old, new := xds.NewSnapshot(tt.old), xds.NewSnapshot(tt.new)
			d := new.Diff(old)
			for _, got := range []struct {
				what      string
				got, want list
			}{{"added", d.Added, tt.added}, {"changed", d.Changed, tt.changed}, {"removed", d.Removed, tt.removed}} {
				if !slices.Equal(got.got, got.want) {
					t.Errorf("%s: %v, want %v", got.what, got.got, got.want)
				}
			}
			if none := len(tt.added)+len(tt.changed)+len(tt.removed) == 0; d.Empty() != none {
				t.Errorf("empty: %v", d.Empty())
			}
			if shadow := len(tt.new) > 1 && tt.new[0].Key == tt.new[1].Key; !shadow && (old.ID() == new.ID()) != d.Empty() {
				t.Errorf("id %s after %s", new.ID(), old.ID())
			}
		})
	}
	old := xds.NewSnapshot(list{a, c, l, s})
	new := old.Apply(xds.Change{Removed: list{a, l, s}, Added: list{aNew, b, l}})
	if d := new.Diff(old); !slices.Equal(d.Added, list{b}) || !slices.Equal(d.Changed, list{aNew}) || !slices.Equal(d.Removed, list{s}) {
		t.Errorf("after a Change: %v", d)
	}
	double := old.Apply(xds.Change{Added: list{aNew}}) // behind the first of its Key
	if d := double.Diff(old); !d.Empty() {
		t.Errorf("after a Change that puts one behind another: %v", d)
	}
	if d := xds.NewSnapshot(list{a}).Diff(nil); !slices.Equal(d.Added, list{a}) {
		t.Errorf("after none: %v", d)
	}
}

// The version of a Snapshot depends on the content of its resources.
func TestSnapshotVersion(t *testing.T) {
	a, again := resource(t, &clusterv3.Cluster{Name: "a"}, ""), resource(t, &clusterv3.Cluster{Name: "a"}, "")
	l := resource(t, &listenerv3.Listener{Name: "a"}, "")
	one, other := xds.NewSnapshot([]*xds.Resource{a, l}), xds.NewSnapshot([]*xds.Resource{l, again})
	if one.ID() != other.ID() || one.Version(xds.Cluster) != other.Version(xds.Cluster) {
		t.Error("the same resources have two ids")
	}
	clusters := xds.NewSnapshot([]*xds.Resource{a})
	if clusters.Version(xds.Cluster) != one.Version(xds.Cluster) {
		t.Error("the version of the clusters depends on listeners")
	}
	if clusters.ID() == one.ID() || clusters.Version(xds.Listener) == one.Version(xds.Listener) {
		t.Error("without its listener a snapshot is the same")
	}
}
