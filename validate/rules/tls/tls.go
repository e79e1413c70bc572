package tls

import (
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate"
	"xdspub/validate/boring"
	"xdspub/validate/facts"
	"xdspub/xds"
)

// Messages of TLS that several rules look at.
const (
	tlsDownstream  protoreflect.FullName = "envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext"
	tlsUpstream    protoreflect.FullName = "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"
	tlsCertificate protoreflect.FullName = "envoy.extensions.transport_sockets.tls.v3.TlsCertificate"
	tlsValidation  protoreflect.FullName = "envoy.extensions.transport_sockets.tls.v3.CertificateValidationContext"
)

// content returns the inline content of a data source. known is false for a file or a variable, which only
// Envoy reads.
func content(d *corev3.DataSource) (data []byte, known bool) {
	switch s := d.GetSpecifier().(type) {
	case *corev3.DataSource_InlineString:
		return []byte(s.InlineString), true
	case *corev3.DataSource_InlineBytes:
		return s.InlineBytes, true
	default:
		return nil, d == nil
	}
}

// tlsContext is one side of TLS.
type tlsContext struct {
	node *xds.Node
	// One of the two is set.
	down *tlsv3.DownstreamTlsContext
	up   *tlsv3.UpstreamTlsContext
	// quic is set if QUIC uses the context.
	quic bool
}

// tlsContextAt returns the context that is, or is around, a node. ok is false if Envoy ignores the context, or
// if a handshaker of the user decides.
func tlsContextAt(n *xds.Node) (tlsContext, bool) {
	for ; n != nil; n = n.Parent {
		c := tlsContext{node: n}
		other := protoreflect.FullName("envoy.config.cluster.v3.Cluster") // misplaced-extension reports a context of the other side
		switch m := n.Message.(type) {
		case *tlsv3.DownstreamTlsContext:
			c.down = m
		case *tlsv3.UpstreamTlsContext:
			c.up = m
			other = "envoy.config.listener.v3.Listener"
		default:
			continue
		}
		if facts.Inside(n, other) {
			return tlsContext{}, false
		}
		c.quic = facts.Inside(n,
			"envoy.extensions.transport_sockets.quic.v3.QuicDownstreamTransport.downstream_tls_context",
			"envoy.extensions.transport_sockets.quic.v3.QuicUpstreamTransport.upstream_tls_context",
		)
		return c, c.common().GetCustomHandshaker() == nil
	}
	return tlsContext{}, false
}

func (c tlsContext) common() *tlsv3.CommonTlsContext {
	if c.down != nil {
		return c.down.GetCommonTlsContext()
	}
	return c.up.GetCommonTlsContext()
}

func (c tlsContext) isServer() bool { return c.down != nil }

// awaitsSecret reports whether the context waits for a secret by SDS that the files do
// not have.
func (c tlsContext) awaitsSecret(p *validate.LookupPass) bool {
	common := c.common()
	wanted := append(slices.Clone(common.GetTlsCertificateSdsSecretConfigs()),
		common.GetValidationContextSdsSecretConfig(),
		common.GetCombinedValidationContext().GetValidationContextSdsSecretConfig())
	return slices.ContainsFunc(wanted, func(s *tlsv3.SdsSecretConfig) bool {
		return s.GetSdsConfig() != nil && p.Snapshot.Lookup(xds.Secret, s.GetName()) == nil
	})
}

// commonPath is the path of a field of the common part.
func (c tlsContext) commonPath(field string) xds.Path {
	return c.node.Path().Field("common_tls_context").Field(field)
}

// secretUser is a place that asks for a secret.
type secretUser struct {
	*xds.Subscription
	in *xds.Resource
}

// usersOfSecrets are the places that ask for a secret, by its name.
var usersOfSecrets = validate.NewIndex(nil, func(_ *xds.Snapshot, r *xds.Resource, add func(string, secretUser)) {
	list := r.Facts().Subscriptions
	for i := range list {
		if list[i].Target == xds.Secret {
			add(list[i].Name, secretUser{&list[i], r})
		}
	}
})

// usersOf is the key of what secretUsers returns.
type usersOf struct{ *xds.Resource }

// secretUsers returns the places that use the secret under judgement. Envoy keeps the secrets of a bootstrap
// by kind, so that secrets of two kinds can share a name. A place whose wanted kind is missing gets the first
// secret of another kind.
func secretUsers(p *validate.LookupPass) []secretUser {
	return validate.Once(&p.Pass, usersOf{p.Resource}, func() (users []secretUser) {
		firsts := make(map[protoreflect.Name]*xds.Resource) // by kind
		for _, r := range slices.Backward(p.Namesakes()) {
			firsts[xds.SecretKind(r.Message().(*tlsv3.Secret))] = r
		}
		for _, u := range usersOfSecrets.Lookup(p.Snapshot, p.Resource.Name) {
			gets := firsts[xds.WantedSecret(u.Node.Field())]
			if gets == p.Resource || gets == nil && p.IsFirst() {
				users = append(users, u)
			}
		}
		return users
	})
}

// secretFor returns the secret that a reference gets, by the rules of secretUsers, or nil.
func secretFor(p *validate.LookupPass, name string, wanted protoreflect.Name) *xds.Resource {
	all := p.Snapshot.Named(xds.Secret, name)
	for _, r := range all {
		if xds.SecretKind(r.Message().(*tlsv3.Secret)) == wanted {
			return r
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all[0]
}

// part is a message of TLS that a rule judges, inline or in a secret.
type part struct {
	facts.Place
	// users are the contexts that use the part; empty for a secret without a subscription.
	users []tlsContext
	// secret says that it stands in a secret.
	secret bool
	// sds says that it comes by SDS, not from the bootstrap.
	sds bool
}

// report adds a finding at a field of the part. For a secret without a subscription the finding is a warning,
// because Envoy refuses the secret only at the first subscription.
func (t part) report(p *validate.Pass, field string, f validate.Finding) {
	f.Resource, f.Path = t.Resource, t.Path
	if field != "" {
		f.Path = f.Path.Field(field)
	}
	if len(t.users) == 0 {
		f.Warning = true
		f.Message += "; nothing uses this secret yet"
	}
	p.Report(f)
}

func (t part) any(is func(tlsContext) bool) bool {
	for _, c := range t.users {
		if is(c) {
			return true
		}
	}
	return false
}

func (t part) isServers() bool { return t.any(tlsContext.isServer) }

// secretPart returns the secret under judgement if its field holds a message, with the users that want such a
// message. ok is false if the field is unset, or if no such user reads the secret.
func secretPart(p *validate.LookupPass, field protoreflect.Name) (secret *tlsv3.Secret, t part, ok bool) {
	secret, ok = p.Resource.Message().(*tlsv3.Secret)
	if m := secret.ProtoReflect(); !ok || !m.Has(m.Descriptor().Fields().ByName(field)) {
		return nil, part{}, false
	}
	t = part{Place: facts.Place{Resource: p.Resource, Path: xds.Path(field)}, secret: true}
	users := secretUsers(p)
	judged := len(users) == 0
	for _, u := range users {
		if xds.WantedSecret(u.Node.Field()) != field {
			continue
		}
		if c, ok := tlsContextAt(u.Node); ok {
			t.users = append(t.users, c)
			t.sds = t.sds || u.Source.GetConfigSourceSpecifier() != nil
			judged = true
		}
	}
	return secret, t, judged
}

// certificate is a TLS certificate that a rule judges.
type certificate struct {
	*tlsv3.TlsCertificate
	part
}

// certificateRule returns a rule like of that judges the certificates in contexts and in secrets.
func certificateRule(of *validate.Rule, check func(*validate.Pass, certificate)) *validate.Rule {
	r := *of
	r.Messages = []protoreflect.FullName{tlsCertificate}
	r.Node = func(p *validate.Pass, n *xds.Node) {
		c, ok := tlsContextAt(n)
		if !ok {
			return // in a secret, or not looked at
		}
		m := n.Message.(*tlsv3.TlsCertificate)
		if isPassedOver(m) {
			return
		}
		check(p, certificate{m, part{Place: facts.Place{Resource: p.Resource, Path: n.Path()}, users: []tlsContext{c}}})
	}
	r.Resource = func(p *validate.LookupPass) {
		if s, t, ok := secretPart(p, "tls_certificate"); ok {
			check(&p.Pass, certificate{s.GetTlsCertificate(), t})
		}
	}
	return &r
}

// isPassedOver reports whether a certificate of a context is empty, so that Envoy skips the certificate.
func isPassedOver(m *tlsv3.TlsCertificate) bool {
	return m.GetCertificateChain() == nil && m.GetPrivateKey() == nil && m.GetPkcs12() == nil && m.GetPrivateKeyProvider() == nil
}

// leaf returns the parsed certificate, or nil if the content is unknown or if bad-certificate reports the
// certificate.
func (c certificate) leaf() *boring.Certificate {
	leaf, _, err := c.load()
	if err != nil {
		return nil
	}
	return leaf
}

// load parses the certificate. If the certificate is bad, err is the reason and field the field. leaf is nil
// if the content is unknown.
func (c certificate) load() (leaf *boring.Certificate, field string, err error) {
	field = "certificate_chain"
	if c.GetPkcs12() != nil {
		field = "pkcs12"
		data, known := content(c.GetPkcs12())
		password, passwordKnown := content(c.GetPassword())
		if !known || !passwordKnown || len(data) == 0 {
			return nil, field, nil
		}
		leaf, err = boring.PKCS12(data, string(password))
	} else {
		data, known := content(c.GetCertificateChain())
		if !known || len(data) == 0 {
			return nil, field, nil
		}
		leaf, err = boring.Chain(data)
	}
	if leaf == nil || err != nil {
		return nil, field, err
	}
	if err := leaf.Usable(); err != nil {
		return nil, field, err
	}
	if c.isServers() {
		if err := leaf.UsableByServer(); err != nil {
			return nil, field, err
		}
	}
	if c.any(func(c tlsContext) bool { return c.quic && c.isServer() }) {
		if err := leaf.UsableByQUIC(); err != nil {
			return nil, field, err
		}
	}
	return leaf, field, nil
}

// isEmpty reports whether a data source is known to hold nothing.
func isEmpty(d *corev3.DataSource) bool {
	data, known := content(d)
	return known && len(data) == 0
}

// dateForm is how a time of a certificate is written.
const dateForm = "2006-01-02 15:04 MST"
