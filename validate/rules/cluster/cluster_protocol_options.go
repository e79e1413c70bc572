package cluster

import (
	"fmt"
	"maps"
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var clusterProtocolOptions = &validate.Rule{
	Code: "cluster-protocol-options",
	Doc: `A cluster's protocol options conflict, or do not fit its transport socket.

The key in typed_extension_protocol_options names the extension, and Envoy unpacks the
value as that extension's message ("Unable to unpack as …"). For HTTP the key is
envoy.extensions.upstreams.http.v3.HttpProtocolOptions. Under the older key
envoy.upstreams.http.http_protocol_options Envoy checks the options and does not apply them.

auto_config needs transport sockets with ALPN, such as TLS. With HTTP/3 it also needs
alternate_protocols_cache_options; Envoy rejects a key_value_store_config in them unless it
runs with --concurrency 1. HTTP/3 needs a transport socket named
envoy.transport_sockets.quic, or one inside envoy.transport_sockets.http_11_proxy: here
Envoy checks the name, not only the type. The released binary has no header validation
extensions.

Beside these options the older fields of the cluster have no effect, except
max_requests_per_connection, which may be set in one of the two places only. Without them a
cluster can't have both http_protocol_options and http2_protocol_options, unless
protocol_selection is USE_DOWNSTREAM_PROTOCOL.`,
	Checks: []diag.Check{
		{Name: "alpn", Summary: "auto_config needs a transport socket with ALPN."},
		{Name: "header-validation", Summary: "header_validation_config is set, and no extension for it exists."},
		{Name: "http-versions", Summary: "Both http_protocol_options and http2_protocol_options are set."},
		{Name: "key-value-store", Summary: "The cache of alternate protocols is kept in a store."},
		{Name: "mismatched-options", Summary: "The options do not belong to their key."},
		{Name: "older-fields", Summary: "A field of the cluster has no effect beside HttpProtocolOptions."},
		{Name: "older-key", Summary: "Options under the older key are not applied."},
		{Name: "protocols-cache", Summary: "HTTP/3 in auto_config needs a cache of alternate protocols."},
		{Name: "quic-transport", Summary: "HTTP/3 needs a QUIC transport socket."},
		{Name: "requests-per-connection", Summary: "max_requests_per_connection is set in two places."},
	},
	Messages: []protoreflect.FullName{"envoy.config.cluster.v3.Cluster", httpProtocolOptions},
	Node: func(p *validate.Pass, n *xds.Node) {
		switch m := n.Message.(type) {
		case *clusterv3.Cluster:
			options := m.GetTypedExtensionProtocolOptions()
			path := n.Path().Field("typed_extension_protocol_options")
			for _, key := range slices.Sorted(maps.Keys(options)) {
				checkOptionsKey(p, path.Key(key), key, options[key])
			}
			checkOlderOptions(p, n, m)
		case *httpv3.HttpProtocolOptions:
			c, at := xds.Enclosing[*clusterv3.Cluster](n)
			if at == nil {
				return
			}
			checkHTTPOptions(p, n, m)
			if a, _ := xds.Enclosing[*anypb.Any](n); a == c.GetTypedExtensionProtocolOptions()[httpProtocolOptions] {
				checkTransport(p, n, m, at, c)
			}
		}
	},
}

const (
	olderTCPProtocolOptions = "envoy.upstreams.tcp.tcp_protocol_options"
	tcpProtocolOptions      = "envoy.extensions.upstreams.tcp.v3.TcpProtocolOptions"
)

func checkOptionsKey(p *validate.Pass, path xds.Path, key string, a *anypb.Any) {
	want, known := xds.ProtocolOptions[key]
	// Envoy compares the Any's own type, not the type inside a TypedStruct.
	got := xds.NameInURL(a.GetTypeUrl())
	f := validate.Finding{Path: path}
	switch {
	case !known:
		return // reported by unresolved-reference
	case key == facts.OlderHTTPProtocolOptions || key == olderTCPProtocolOptions:
		f.Check = "older-key"
		f.Message = fmt.Sprintf("Envoy does not apply options under the older key %q", key)
		f.Help = fmt.Sprintf("change the key to %s", want)
		f.Warning = true
	case got == "google.protobuf.Struct" && xds.UnpackOptions(map[string]*anypb.Any{key: a}, key) == nil:
		f.Path = path.Field("value")
		f.Check = "mismatched-options"
		f.Message = fmt.Sprintf("the value does not match %s", want)
		f.Help = "check the names and types of the fields"
	case got == want || !p.Envoy.Holds(got) || isAnything(got) || len(a.GetValue()) == 0 && want != httpProtocolOptions:
		return // Envoy unpacks an empty Any as any message, but it needs HTTP options
	default:
		f.Check = "mismatched-options"
		f.Message = fmt.Sprintf("%s does not match the key %q", got, key)
		f.Help = fmt.Sprintf("write a %s, or correct the key", want)
	}
	p.Report(f)
}

// isAnything reports whether Envoy reads a message of a type as whatever message it expects.
func isAnything(name protoreflect.FullName) bool {
	switch name {
	case "google.protobuf.Struct", "udpa.type.v1.TypedStruct", "xds.type.v3.TypedStruct":
		return true
	}
	return false
}

func checkOlderOptions(p *validate.Pass, n *xds.Node, c *clusterv3.Cluster) {
	common := c.GetCommonHttpProtocolOptions()
	set := c.GetTypedExtensionProtocolOptions()[httpProtocolOptions] != nil
	if set {
		common = httpOptions(c).GetCommonHttpProtocolOptions()
		for _, older := range []struct {
			field string
			set   bool
		}{
			{"common_http_protocol_options", c.GetCommonHttpProtocolOptions() != nil},
			{"http_protocol_options", c.GetHttpProtocolOptions() != nil},
			{"http2_protocol_options", c.GetHttp2ProtocolOptions() != nil},
			{"protocol_selection", c.GetProtocolSelection() != 0},
			{"upstream_http_protocol_options", c.GetUpstreamHttpProtocolOptions() != nil},
		} {
			if older.set {
				p.Report(validate.Finding{
					Check:   "older-fields",
					Path:    n.Path().Field(older.field),
					Message: older.field + " has no effect beside HttpProtocolOptions",
					Help:    "move it to HttpProtocolOptions in typed_extension_protocol_options",
					Warning: true,
				})
			}
		}
	}
	if c.GetMaxRequestsPerConnection() != nil && common.GetMaxRequestsPerConnection() != nil {
		p.Report(validate.Finding{
			Check:   "requests-per-connection",
			Path:    n.Path().Field("max_requests_per_connection"),
			Message: "max_requests_per_connection is set in both the cluster and its HTTP options",
			Help:    "keep the one in common_http_protocol_options",
		})
	}
	if !set && c.GetHttpProtocolOptions() != nil && c.GetHttp2ProtocolOptions() != nil &&
		c.GetProtocolSelection() == clusterv3.Cluster_USE_CONFIGURED_PROTOCOL {
		p.Report(validate.Finding{
			Check:   "http-versions",
			Path:    n.Path().Field("http2_protocol_options"),
			Message: "both http_protocol_options and http2_protocol_options are set",
			Help:    "keep one of them, or set protocol_selection: USE_DOWNSTREAM_PROTOCOL",
		})
	}
}

// checkHTTPOptions makes the checks that Envoy makes under both keys, the current and the older.
func checkHTTPOptions(p *validate.Pass, n *xds.Node, m *httpv3.HttpProtocolOptions) {
	if m.GetHeaderValidationConfig() != nil {
		p.Report(validate.Finding{
			Check:   "header-validation",
			Path:    n.Path().Field("header_validation_config"),
			Message: "header_validation_config is not supported: the released Envoy has no header validation extensions",
			Help:    "remove it",
		})
	}
	if auto := m.GetAutoConfig(); auto.GetHttp3ProtocolOptions() != nil {
		checkProtocolsCache(p, n.Path().Field("auto_config"), auto)
	}
}

func checkProtocolsCache(p *validate.Pass, path xds.Path, auto *httpv3.HttpProtocolOptions_AutoHttpConfig) {
	cache := auto.GetAlternateProtocolsCacheOptions()
	switch {
	case cache == nil:
		p.Report(validate.Finding{
			Check:   "protocols-cache",
			Path:    path.Field("http3_protocol_options"),
			Message: "http3_protocol_options in auto_config needs alternate_protocols_cache_options",
			Help:    "add alternate_protocols_cache_options: {name: …}, the cache of hosts that support HTTP/3",
		})
	case cache.GetKeyValueStoreConfig() != nil:
		p.Report(validate.Finding{
			Check:   "key-value-store",
			Path:    path.Field("alternate_protocols_cache_options").Field("key_value_store_config"),
			Message: "Envoy rejects key_value_store_config here, unless it runs with --concurrency 1",
			Help:    "remove it: Envoy then keeps the cache in memory",
			Warning: true,
		})
	}
}
