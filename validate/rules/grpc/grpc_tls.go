package grpc

import (
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/xds"
)

var grpcTLS = &validate.Rule{
	Code: "grpc-tls",
	Doc: `gRPC rejects the transport security of a cluster or a listener.

gRPC has no SDS: certificates come from certificate providers, which the client's own bootstrap
has by name. The transport_socket is named envoy.transport_sockets.tls, and holds an
UpstreamTlsContext (of a cluster) or a DownstreamTlsContext (of a server's filter chain). A client
needs validation_context.ca_certificate_provider_instance, a server
tls_certificate_provider_instance, and that with require_client_certificate as well. A server has
no match_subject_alt_names, require_sni or ocsp_staple_policy.

gRPC rejects certificates, keys and secrets in their place, transport_socket_matches, tls_params,
custom_handshaker, and in a validation context verify_certificate_spki, verify_certificate_hash,
require_signed_certificate_timestamp, crl and custom_validator_config (gRFC A29). Clients use TLS
only with xDS credentials, and only those do what is said here. gRPC in C++ and Java also takes
system_root_certs (gRFC A82), Go with GRPC_EXPERIMENTAL_XDS_SYSTEM_ROOT_CERTS.`,
	Checks: []diag.Check{
		{Name: "no-provider", Summary: "No certificate provider has the certificate, or says whom to trust."},
		{Name: "system-root-certs", Summary: "gRPC in Go rejects system_root_certs, unless its environment says otherwise."},
		{Name: "transport-socket", Summary: "The transport socket is not the one that gRPC wants."},
		{Name: "unsupported-setting", Summary: "gRPC does not support a setting of TLS."},
	},
	Messages: []protoreflect.FullName{"envoy.config.cluster.v3.Cluster", "envoy.config.listener.v3.FilterChain"},
	Node: func(p *validate.Pass, n *xds.Node) {
		switch m := n.Message.(type) {
		case *clusterv3.Cluster:
			report := func(check validate.CheckName, path xds.Path, what, help string) {
				p.Report(validate.Finding{Check: check, Path: n.Path().Join(path), Message: "gRPC rejects the cluster: " + what, Help: help})
			}
			if len(m.GetTransportSocketMatches()) > 0 {
				report("transport-socket", "transport_socket_matches", "it does not support transport_socket_matches", "write transport_socket")
			}
			if s := m.GetTransportSocket(); s != nil {
				checkUpstream(p, report, s)
			}
		case *listenerv3.FilterChain:
			report := func(check validate.CheckName, path xds.Path, what, help string) {
				p.Report(validate.Finding{Check: check, Path: n.Path().Join(path), Message: "gRPC rejects the listener: " + what, Help: help})
			}
			if s := m.GetTransportSocket(); s != nil && sideOf(n) == server {
				checkDownstream(report, s)
			}
		}
	},
}

// isTLS reports whether a transport socket has the name and the type that gRPC wants. If not, isTLS reports the
// fault.
func isTLS(report reject, s *corev3.TransportSocket, wants protoreflect.FullName) bool {
	const name = "envoy.transport_sockets.tls"
	switch is := xds.PayloadType(s.GetTypedConfig()); {
	case s.GetName() != name:
		report("transport-socket", "transport_socket.name", fmt.Sprintf("the transport socket has the name %q", s.GetName()), "write name: "+name)
		return false
	case is != wants:
		report("transport-socket", "transport_socket", "the transport socket holds "+typeText(is), fmt.Sprintf("write a %s", wants.Name()))
		return false
	}
	return true
}

const socketConfig xds.Path = "transport_socket.typed_config"

func checkUpstream(p *validate.Pass, report reject, s *corev3.TransportSocket) {
	if !isTLS(report, s, "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext") {
		return
	}
	m, _ := xds.Unpack(s.GetTypedConfig()).(*tlsv3.UpstreamTlsContext)
	c := m.GetCommonTlsContext()
	if !checkCommon(report, c, client) || hasRoot(c) {
		return
	}
	if v, at := validationOf(c); v.GetSystemRootCerts() != nil {
		p.Report(validate.Finding{
			Check: "system-root-certs",
			Path:  socketConfig.Field("common_tls_context").Join(at).Field("system_root_certs"), Warning: true,
			Message: "gRPC in Go rejects the cluster unless its environment has GRPC_EXPERIMENTAL_XDS_SYSTEM_ROOT_CERTS=true",
			Help:    "write ca_certificate_provider_instance if there are such clients",
		})
	} else {
		report("no-provider", socketConfig, "no certificate provider says which "+
			"servers to trust", "write common_tls_context.validation_context.ca_certificate_provider_instance")
	}
}

func checkDownstream(report reject, s *corev3.TransportSocket) {
	if !isTLS(report, s, "envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext") {
		return
	}
	m, _ := xds.Unpack(s.GetTypedConfig()).(*tlsv3.DownstreamTlsContext)
	if m.GetRequireSni().GetValue() {
		report("unsupported-setting", socketConfig.Field("require_sni"), "it does not support require_sni", "remove it")
	}
	if m.GetOcspStaplePolicy() != tlsv3.DownstreamTlsContext_LENIENT_STAPLING {
		report("unsupported-setting", socketConfig.Field("ocsp_staple_policy"), "it supports LENIENT_STAPLING alone", "remove it")
	}
	c := m.GetCommonTlsContext()
	if !checkCommon(report, c, server) {
		return
	}
	if c.GetTlsCertificateProviderInstance().GetInstanceName() == "" {
		report("no-provider", socketConfig.Field("common_tls_context"), "no certificate provider has the "+
			"server's certificate", "write tls_certificate_provider_instance")
	}
	if v, _ := validationOf(c); !hasRoot(c) && (v != nil || m.GetRequireClientCertificate().GetValue()) {
		report("no-provider", socketConfig, "no certificate provider says which "+
			"clients to trust", "write common_tls_context.validation_context.ca_certificate_provider_instance")
	}
}

// checkCommon checks the TLS settings that clients and servers share. It returns false if a setting is missing or
// unsupported, or if gRPC uses the older providers.
func checkCommon(report reject, c *tlsv3.CommonTlsContext, by side) bool {
	path := socketConfig.Field("common_tls_context")
	if c == nil {
		report("no-provider", socketConfig, "it has no common_tls_context", "add it, with certificate providers")
		return false
	}
	if olderProviders(c) {
		return false // gRPC uses the older providers, and ignores the other settings
	}
	fine := true
	no := func(at xds.Path, is bool, what string) {
		if is {
			fine = false
			report("unsupported-setting", at, "it does not support "+what, "write the name of a certificate provider of the client's bootstrap")
		}
	}
	no(path.Field("tls_params"), c.GetTlsParams() != nil, "tls_params")
	no(path.Field("custom_handshaker"), c.GetCustomHandshaker() != nil, "custom_handshaker")
	if c.GetTlsCertificateProviderInstance() == nil {
		no(path.Field("tls_certificates"), len(c.GetTlsCertificates()) > 0, "tls_certificates")
		no(path.Field("tls_certificate_sds_secret_configs"), len(c.GetTlsCertificateSdsSecretConfigs()) > 0, "SDS")
	}
	no(path.Field("validation_context_sds_secret_config"), c.GetValidationContextSdsSecretConfig() != nil, "SDS")
	v, at := validationOf(c)
	at = path.Join(at)
	no(at.Field("verify_certificate_spki"), len(v.GetVerifyCertificateSpki()) > 0, "verify_certificate_spki")
	no(at.Field("verify_certificate_hash"), len(v.GetVerifyCertificateHash()) > 0, "verify_certificate_hash")
	no(at.Field("require_signed_certificate_timestamp"), v.GetRequireSignedCertificateTimestamp().GetValue(), "require_signed_certificate_timestamp")
	no(at.Field("crl"), v.GetCrl() != nil, "crl")
	no(at.Field("custom_validator_config"), v.GetCustomValidatorConfig() != nil, "custom_validator_config")
	no(at.Field("match_subject_alt_names"), by == server && isSet(v, "match_subject_alt_names"), "match_subject_alt_names of a server")
	return fine
}

// validationOf returns the validation context and its path. The context is nil if it is not set.
func validationOf(c *tlsv3.CommonTlsContext) (*tlsv3.CertificateValidationContext, xds.Path) {
	if v := c.GetValidationContext(); v != nil {
		return v, "validation_context"
	}
	return c.GetCombinedValidationContext().GetDefaultValidationContext(), "combined_validation_context.default_validation_context"
}

// hasRoot reports whether a certificate provider supplies the trusted CAs.
func hasRoot(c *tlsv3.CommonTlsContext) bool {
	v, _ := validationOf(c)
	return v.GetCaCertificateProviderInstance().GetInstanceName() != ""
}

// olderProviders reports whether a certificate provider is named in one of the deprecated fields.
func olderProviders(c *tlsv3.CommonTlsContext) bool {
	const roots = "validation_context_certificate_provider_instance"
	return isSet(c, "tls_certificate_certificate_provider_instance") || isSet(c, roots) || isSet(c.GetCombinedValidationContext(), roots)
}
