package xds

import (
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// SecretKind returns the name of the field that holds the content of a secret, such as tls_certificate; empty if no
// such field is set.
func SecretKind(s *tlsv3.Secret) protoreflect.Name {
	m := s.ProtoReflect()
	if fd := m.WhichOneof(m.Descriptor().Oneofs().ByName("type")); fd != nil {
		return fd.Name()
	}
	return ""
}

// WantedSecret returns the SecretKind that a reference to a secret needs. reference is the field that holds the
// SdsSecretConfig.
func WantedSecret(reference protoreflect.FullName) protoreflect.Name {
	switch reference {
	case "envoy.extensions.transport_sockets.tls.v3.CommonTlsContext.tls_certificate_sds_secret_configs":
		return "tls_certificate"
	case "envoy.extensions.transport_sockets.tls.v3.CommonTlsContext.validation_context_sds_secret_config",
		"envoy.extensions.transport_sockets.tls.v3.CommonTlsContext.CombinedCertificateValidationContext.validation_context_sds_secret_config":
		return "validation_context"
	case "envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext.session_ticket_keys_sds_secret_config":
		return "session_ticket_keys"
	default:
		return "generic_secret"
	}
}
