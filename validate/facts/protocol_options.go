package facts

// OlderHTTPProtocolOptions is a key whose value is not in effect.
const OlderHTTPProtocolOptions = "envoy.upstreams.http.http_protocol_options"
