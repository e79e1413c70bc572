package bootstrap

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"path"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/anypb"
)

// TLS holds the files by which the server and an Envoy authenticate to each other. All paths are absolute paths as
// Envoy sees them.
type TLS struct {
	// CA is a PEM file with the CA certificates that have signed the server's certificate.
	CA string
	// Cert is a PEM file with the certificate chain of this Envoy, and Key a PEM file with its private key. Without
	// both, the Envoy does not authenticate to the server.
	Cert, Key string
	// Name is the name in the server's certificate, a DNS name or an IP address. "" means the host of the server's
	// address.
	Name string
	// Prefix is the beginning of the paths of the files that Server.Secrets returns.
	Prefix string
}

// SecretFile is a file to which a bootstrap refers, with its content.
type SecretFile struct {
	Path string
	Data []byte
}

const (
	serverCA          = "server-ca"
	clientCertificate = "client-certificate"
)

func (t TLS) check() error {
	var faults []error
	for _, f := range []struct{ of, path string }{
		{"the CA", t.CA}, {"the certificate", t.Cert}, {"the private key", t.Key}, {"the secrets", t.Prefix},
	} {
		if optional := f.of != "the CA" && f.of != "the secrets"; !path.IsAbs(f.path) && !(optional && f.path == "") {
			faults = append(faults, fmt.Errorf("the file of %s %q is not an absolute path", f.of, f.path))
		}
	}
	if (t.Cert == "") != (t.Key == "") {
		faults = append(faults, errors.New("a certificate and a private key belong together"))
	}
	return errors.Join(faults...)
}

// Secrets returns the files of SDS resources that refer to the certificates. Through these files, Envoy reads a
// certificate again after its renewal. If the bootstrap itself named the certificates, Envoy would read them only
// when it starts. The files must exist when Envoy starts.
func (s Server) Secrets() ([]SecretFile, error) {
	if s.TLS == nil {
		return nil, nil
	}
	t, host := *s.TLS, s.name()
	san := tlsv3.SubjectAltNameMatcher_DNS
	if _, err := netip.ParseAddr(host); err == nil {
		san = tlsv3.SubjectAltNameMatcher_IP_ADDRESS
	}
	secrets := []*tlsv3.Secret{{Name: serverCA, Type: &tlsv3.Secret_ValidationContext{ValidationContext: &tlsv3.CertificateValidationContext{
		TrustedCa: inFile(t.CA), WatchedDirectory: folderOf(t.CA),
		MatchTypedSubjectAltNames: []*tlsv3.SubjectAltNameMatcher{{
			SanType: san, Matcher: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: host}},
		}},
	}}}}
	if t.Cert != "" {
		secrets = append(secrets, &tlsv3.Secret{Name: clientCertificate, Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: &tlsv3.TlsCertificate{
			CertificateChain: inFile(t.Cert), PrivateKey: inFile(t.Key), WatchedDirectory: folderOf(t.Cert, t.Key),
		}}})
	}
	var list []SecretFile
	for _, secret := range secrets {
		packed, err := anypb.New(secret)
		if err != nil {
			return nil, fmt.Errorf("envoy bootstrap: %w", err)
		}
		data, err := YAML(nil, &discoveryv3.DiscoveryResponse{Resources: []*anypb.Any{packed}})
		if err != nil {
			return nil, fmt.Errorf("envoy bootstrap: %w", err)
		}
		list = append(list, SecretFile{t.secretFile(secret.Name), data})
	}
	return list, nil
}

func (t TLS) secretFile(name string) string { return t.Prefix + "-" + name + ".yaml" }

// secret returns the config source of one of the Secrets.
func (t TLS) secret(name string) *tlsv3.SdsSecretConfig {
	file := t.secretFile(name)
	return &tlsv3.SdsSecretConfig{Name: name, SdsConfig: &corev3.ConfigSource{
		ResourceApiVersion: corev3.ApiVersion_V3,
		ConfigSourceSpecifier: &corev3.ConfigSource_PathConfigSource{PathConfigSource: &corev3.PathConfigSource{
			Path: file, WatchedDirectory: folderOf(file),
		}},
	}}
}

// name returns the name that the server's certificate must have.
func (s Server) name() string {
	host, _ := s.hostPort()
	return cmp.Or(s.TLS.Name, host)
}

// transportSocket returns the transport socket for a server whose certificate has the name host.
func (t TLS) transportSocket(host string) (*corev3.TransportSocket, error) {
	common := &tlsv3.CommonTlsContext{
		// The server refuses TLS 1.2 and older, and TLS 1.2 is the newest version that Envoy offers by default.
		TlsParams: &tlsv3.TlsParameters{TlsMinimumProtocolVersion: tlsv3.TlsParameters_TLSv1_3, TlsMaximumProtocolVersion: tlsv3.TlsParameters_TLSv1_3},
		ValidationContextType: &tlsv3.CommonTlsContext_ValidationContextSdsSecretConfig{
			ValidationContextSdsSecretConfig: t.secret(serverCA),
		},
	}
	if t.Cert != "" {
		common.TlsCertificateSdsSecretConfigs = []*tlsv3.SdsSecretConfig{t.secret(clientCertificate)}
	}
	upstream := &tlsv3.UpstreamTlsContext{CommonTlsContext: common}
	if _, err := netip.ParseAddr(host); err != nil {
		upstream.Sni = host // SNI has no IP addresses
	}
	packed, err := anypb.New(upstream)
	return &corev3.TransportSocket{Name: "envoy.transport_sockets.tls", ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: packed}}, err
}

func inFile(name string) *corev3.DataSource {
	return &corev3.DataSource{Specifier: &corev3.DataSource_Filename{Filename: name}}
}

// folderOf returns the folder of files, for Envoy to watch. Envoy then reads the files again after each rename into
// the folder, even if a link to a whole folder is replaced, as in Kubernetes. folderOf returns nil if the files are
// in several folders, because Envoy watches only one folder; without it, Envoy watches each file.
func folderOf(files ...string) *corev3.WatchedDirectory {
	folder := path.Dir(files[0])
	if slices.ContainsFunc(files, func(f string) bool { return path.Dir(f) != folder }) {
		return nil
	}
	return &corev3.WatchedDirectory{Path: folder}
}
