package xds_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"xdspub/xds"
	"xdspub/xds/params"
)

// TestApply compares Apply with NewSnapshot after random changes, one after another, with names that several
// resources share.
func TestApply(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	some, err := params.Parse(&discoveryv3.DynamicParameterConstraints{Type: &discoveryv3.DynamicParameterConstraints_Constraint{
		Constraint: &discoveryv3.DynamicParameterConstraints_SingleConstraint{
			Key: "zone", ConstraintType: &discoveryv3.DynamicParameterConstraints_SingleConstraint_Value{Value: "a"},
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	made := func() *xds.Resource {
		name := fmt.Sprint(random.IntN(12))
		if random.IntN(3) == 0 {
			return resource(t, &endpointv3.ClusterLoadAssignment{ClusterName: name}, "")
		}
		r := resource(t, &clusterv3.Cluster{Name: name}, "")
		if random.IntN(10) == 0 {
			r.For = some
		}
		return r
	}
	for range 200 {
		var list []*xds.Resource // in the order of the source
		s := xds.NewSnapshot(nil)
		for range 20 {
			var c xds.Change
			before := slices.Clone(list)
			list = slices.DeleteFunc(list, func(r *xds.Resource) bool {
				gone := random.IntN(4) == 0
				if gone {
					c.Removed = append(c.Removed, r)
				}
				return gone
			})
			for range random.IntN(4) {
				c.Added = append(c.Added, made())
			}
			if len(list) > 0 && random.IntN(2) == 0 { // one moves to the end
				i := random.IntN(len(list))
				moved := list[i]
				c.Removed, c.Added = append(c.Removed, moved), append(c.Added, moved)
				list = slices.Delete(list, i, i+1)
			}
			list = append(list, c.Added...)
			next := s.Apply(c)
			want := xds.NewSnapshot(list)
			if !slices.Equal(next.All(), want.All()) || next.ID() != want.ID() || next.Restricted() != want.Restricted() {
				t.Fatalf("Apply: %v, want %v", next.All(), want.All())
			}
			if !slices.Equal(s.All(), xds.NewSnapshot(before).All()) {
				t.Fatal("Apply changes the snapshot that it is called on")
			}
			for _, r := range list {
				named := slices.DeleteFunc(slices.Clone(list), func(o *xds.Resource) bool { return o.Key != r.Key })
				if !slices.Equal(next.Named(r.Key), named) {
					t.Fatalf("Named(%s): %v, want %v", r.Key, next.Named(r.Key), named)
				}
			}
			if since, known := next.Since(s); !known || !slices.Equal(since.Added, c.Added) || !slices.Equal(since.Removed, c.Removed) {
				t.Fatalf("Since: %v, %v, want %v", since, known, c)
			}
			if _, known := want.Since(s); known {
				t.Fatal("Since knows how a snapshot differs from one that it was not made from")
			}
			if since, known := next.Since(next); !known || !since.Empty() {
				t.Fatal("a snapshot differs from itself")
			}
			compareChanges(t, s, next)
			s = next
		}
	}
}

// compareChanges compares ChangesSince with all resources of both Snapshots.
func compareChanges(t *testing.T, old, is *xds.Snapshot) {
	t.Helper()
	c, _ := is.Since(old)
	changes, ok := is.ChangesSince(old)
	doubled := slices.ContainsFunc(slices.Concat(c.Removed, c.Added), func(r *xds.Resource) bool {
		return len(old.Named(r.Key)) > 1 || len(is.Named(r.Key)) > 1
	})
	if ok == doubled {
		t.Fatalf("ChangesSince: %v, want %v", ok, !doubled)
	}
	if !ok {
		return
	}
	var want []xds.Edited
	for _, typ := range xds.Types {
		for _, name := range []string{"0", "1", "10", "11", "2", "3", "4", "5", "6", "7", "8", "9"} {
			e := xds.Edited{Was: old.Lookup(typ, name), Is: is.Lookup(typ, name)}
			if e.Was != e.Is || slices.Contains(c.Added, e.Is) {
				want = append(want, e)
			}
		}
	}
	if !slices.Equal(changes, want) {
		t.Fatalf("ChangesSince: %v, want %v", changes, want)
	}
}
