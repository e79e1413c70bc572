package facts

const (
	// ReverseConnectionResolver takes what a listener of reverse connections has for an
	// address.
	ReverseConnectionResolver = "envoy.resolvers.reverse_connection"
	// OlderHTTPProtocolOptions is a key of typed_extension_protocol_options whose value
	// is not in effect.
	OlderHTTPProtocolOptions = "envoy.upstreams.http.http_protocol_options"
	// TLVsOfHealthCheck is a PROXY protocol header whose TLVs Envoy doesn't look at.
	TLVsOfHealthCheck = "envoy.config.core.v3.HealthCheck.TcpHealthCheck.proxy_protocol_config"
)
