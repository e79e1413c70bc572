package envoyapi_test

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"xdspub/envoy/envoyapi"
	_ "xdspub/xds/alltypes"
)

// TestRemoved: removed-fields.txt has a replacement for each reserved name of the API.
func TestRemoved(t *testing.T) {
	var missing []string
	met := 0
	protoregistry.GlobalTypes.RangeMessages(func(mt protoreflect.MessageType) bool {
		md := mt.Descriptor()
		for i := range md.ReservedNames().Len() {
			name := string(md.ReservedNames().Get(i))
			switch {
			case !strings.HasPrefix(string(md.FullName()), "envoy."):
			case envoyapi.Removed(md.FullName(), name) == "":
				missing = append(missing, string(md.FullName())+"."+name)
			default:
				met++
			}
		}
		return true
	})
	slices.Sort(missing)
	for _, name := range missing {
		t.Errorf("the API had a field %s: say in removed-fields.txt what has taken its place", name)
	}
	if met < 50 {
		t.Errorf("%d reserved names were met: descriptors hold them in another way now", met)
	}
	if got := envoyapi.Removed("envoy.config.cluster.v3.Cluster", "name"); got != "" {
		t.Errorf("a field of the API is gone: %s", got)
	}
}

func TestSuccessor(t *testing.T) {
	for old, want := range map[protoreflect.FullName]protoreflect.FullName{
		"envoy.api.v2.Cluster":                              "envoy.config.cluster.v3.Cluster",
		"envoy.api.v2.auth.Secret":                          "envoy.extensions.transport_sockets.tls.v3.Secret",
		"envoy.config.filter.http.router.v2.Router":         "envoy.extensions.filters.http.router.v3.Router",
		"envoy.config.filter.network.tcp_proxy.v2.TcpProxy": "envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy",
		"envoy.config.cluster.v3.Cluster":                   "",
	} {
		if got, _ := envoyapi.Successor(old); got != want {
			t.Errorf("%s became %q, want %q", old, got, want)
		}
	}
}
