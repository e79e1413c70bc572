package xds_test

import (
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"

	"xdspub/tools/canary"
	"xdspub/xds"
)

func TestHoldsSecret(t *testing.T) {
	inListener := func(typed string) *listenerv3.Listener {
		return parse(t, &listenerv3.Listener{}, `{"name": "l", "filter_chains": [{"transport_socket": {"name": "s", "typed_config": `+typed+`}}]}`)
	}
	tls := func(context string) *listenerv3.Listener {
		return inListener(`{"@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext", ` + context + `}`)
	}
	secret := func(text string) *tlsv3.Secret { return parse(t, &tlsv3.Secret{}, text) }
	inHeader := func(key, value string) *routev3.RouteConfiguration {
		return &routev3.RouteConfiguration{RequestHeadersToAdd: []*corev3.HeaderValueOption{{Header: &corev3.HeaderValue{Key: key, Value: value}}}}
	}
	for name, c := range map[string]struct {
		message proto.Message
		want    bool
	}{
		"inline key":       {secret(`{"tls_certificate": {"private_key": {"inline_string": "k"}}}`), true},
		"key as bytes":     {secret(`{"tls_certificate": {"private_key": {"inline_bytes": "aw=="}}}`), true},
		"key by file":      {secret(`{"tls_certificate": {"private_key": {"filename": "k.pem"}}}`), false},
		"key by variable":  {secret(`{"tls_certificate": {"private_key": {"environment_variable": "KEY"}}}`), false},
		"empty key":        {secret(`{"tls_certificate": {"private_key": {"inline_string": ""}}}`), false},
		"certificate only": {secret(`{"tls_certificate": {"certificate_chain": {"inline_string": "c"}}}`), false},
		"validation":       {secret(`{"validation_context": {"trusted_ca": {"inline_string": "ca"}}}`), false},
		"password":         {secret(`{"tls_certificate": {"private_key": {"filename": "k.pem"}, "password": {"inline_string": "p"}}}`), true},
		"pkcs12":           {secret(`{"tls_certificate": {"pkcs12": {"inline_bytes": "aw=="}}}`), true},
		"generic":          {secret(`{"generic_secret": {"secret": {"inline_string": "s"}}}`), true},
		"generic by file":  {secret(`{"generic_secret": {"secret": {"filename": "s"}}}`), false},
		"generic map":      {secret(`{"generic_secret": {"secrets": {"a": {"filename": "f"}, "b": {"inline_string": "s"}}}}`), true},
		"generic files":    {secret(`{"generic_secret": {"secrets": {"a": {"filename": "f"}}}}`), false},
		"ticket keys":      {secret(`{"session_ticket_keys": {"keys": [{"filename": "f"}, {"inline_string": "k"}]}}`), true},
		"ticket key files": {secret(`{"session_ticket_keys": {"keys": [{"filename": "f"}]}}`), false},
		"key provider": {secret(`{"tls_certificate": {"private_key_provider": {"provider_name": "p", "typed_config":
		  {"@type": "type.googleapis.com/google.protobuf.StringValue", "value": "k"}}}}`), true},

		"in a listener":      {tls(`"common_tls_context": {"tls_certificates": [{"private_key": {"inline_string": "k"}}]}`), true},
		"file in a listener": {tls(`"common_tls_context": {"tls_certificates": [{"private_key": {"filename": "k"}}]}`), false},
		"sds in a listener":  {tls(`"common_tls_context": {"tls_certificate_sds_secret_configs": [{"name": "k"}]}`), false},
		"in a TypedStruct": {inListener(`{"@type": "type.googleapis.com/xds.type.v3.TypedStruct",
		  "type_url": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
		  "value": {"common_tls_context": {"tls_certificates": [{"private_key": {"inline_string": "k"}}]}}}`), true},
		"plain text field": {inListener(`{"@type": "type.googleapis.com/envoy.config.trace.v3.ClientConfig", "backend_token": "t"}`), true},
		"list of messages": {inListener(`{"@type": "type.googleapis.com/envoy.extensions.filters.http.api_key_auth.v3.ApiKeyAuth",
		  "credentials": [{"key": "k"}]}`), true},
		"map of texts": {inListener(`{"@type": "type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.CheckSettings",
		  "context_extensions": {"a": "b"}}`), true},
		"payload that can't be read": {listener(t), true},
		"TypedStruct that does not fit": {inListener(`{"@type": "type.googleapis.com/xds.type.v3.TypedStruct",
		  "type_url": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
		  "value": {"common_tls_context": {"tls_certificates": [{"private_key": "k"}]}}}`), true},
		"unmarked": {inListener(`{"@type": "type.googleapis.com/envoy.extensions.grpc_service.call_credentials.access_token.v3.AccessTokenCredentials", "token": "t"}`), true},

		"credential in a header":     {inHeader("Authorization", "Bearer abc"), true},
		"credential beside another":  {inHeader("cookie", "%REQ(cookie)%; session=abc"), true},
		"header of the request":      {inHeader("authorization", "Bearer %REQ(x-token)%"), false},
		"header that lets nobody in": {inHeader("x-version", "1"), false},

		"nothing": {parse(t, &listenerv3.Listener{}, `{"name": "l"}`), false},
	} {
		if got := xds.ResourceOf(xds.Key{}, c.message).Facts().HoldsSecret; got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestSecretFields: each field that the API marks as sensitive holds a secret, and so does each text field with the
// name of a secret.
func TestSecretFields(t *testing.T) {
	fields := canary.Fields()
	if len(fields) < 30 {
		t.Errorf("there are %d fields for secrets", len(fields))
	}
	for _, fd := range fields {
		if !xds.ResourceOf(xds.Key{}, canary.Plant(fd, "canary")).HoldsSecret() {
			t.Errorf("%s is not sensitive", fd.FullName())
		}
	}
}

func TestSensitiveFieldName(t *testing.T) {
	for name, want := range map[string]bool{
		"private_key": true, "privateKey": true, "password": true, "pkcs12": true, "secret": true, "secrets": true,
		"backend_token": true, "private_key_provider": true, "privateKeyProvider": true, "context_extensions": true,
		// Sensitive in one message only, and the name of every other extension's field.
		"typed_config": false, "typedConfig": false,
		"name": false, "certificate_chain": false, "inline_string": false, "": false,
	} {
		if got := xds.SensitiveFieldName(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
