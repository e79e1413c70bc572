package transition

import (
	"fmt"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"xdspub/xds"
)

// ran is an Out with published listeners, and nothing else.
type ran []*xds.Resource

func (r ran) Serves(xds.Subscription) bool { return false }

func (r ran) Read(*xds.Type, string) (*xds.Resource, error) { return nil, nil }

func (r ran) Removed(*xds.Type, *xds.Snapshot) (Removal, error) { return Removal{}, nil }

func (r ran) Of(t *xds.Type) ([]*xds.Resource, error) {
	if t == xds.Listener {
		return r, nil
	}
	return nil, nil
}

// TestGrowth: the memory to judge n renamed listeners grows no faster than n.
func TestGrowth(t *testing.T) {
	listeners := func(prefix string, n int) []*xds.Resource {
		var list []*xds.Resource
		for i := range n {
			r, err := xds.NewResource(&listenerv3.Listener{
				Name: fmt.Sprint(prefix, i),
				Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
					Address: "127.0.0.1", PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(10000 + i)},
				}}},
			}, "", nil)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, r)
		}
		return list
	}
	allocated := func(n int) float64 {
		old, new := ran(listeners("old", n)), xds.NewSnapshot(listeners("new", n))
		return testing.AllocsPerRun(1, func() {
			if list, err := Transitions(old, new, Options{}); err != nil || len(list) > 0 {
				t.Error(list, err)
			}
		})
	}
	if few, many := allocated(200), allocated(800); many > 5*few {
		t.Errorf("%.0f allocations for 200 listeners, %.0f for 800", few, many)
	}
}
