package facts

const (
	// ReverseConnectionResolver is the resolver that reads the address of a listener of reverse connections.
	ReverseConnectionResolver = "envoy.resolvers.reverse_connection"
	// OlderHTTPProtocolOptions is a key of typed_extension_protocol_options. Envoy accepts the key, and ignores its
	// value.
	OlderHTTPProtocolOptions = "envoy.upstreams.http.http_protocol_options"
	// TLVsOfHealthCheck is the field of a health check with a PROXY protocol header. Envoy ignores the TLVs in this
	// header.
	TLVsOfHealthCheck = "envoy.config.core.v3.HealthCheck.TcpHealthCheck.proxy_protocol_config"
)
