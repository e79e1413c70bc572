package facts

// TLVsOfHealthCheck is a PROXY protocol header whose TLVs Envoy doesn't look at.
const TLVsOfHealthCheck = "envoy.config.core.v3.HealthCheck.TcpHealthCheck.proxy_protocol_config"
