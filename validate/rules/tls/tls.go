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

// The messages of TLS that several rules judge.
const (
	tlsDownstream  protoreflect.FullName = "envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext"
	tlsUpstream    protoreflect.FullName = "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"
	tlsCertificate protoreflect.FullName = "envoy.extensions.transport_sockets.tls.v3.TlsCertificate"
	tlsValidation  protoreflect.FullName = "envoy.extensions.transport_sockets.tls.v3.CertificateValidationContext"
)

// content returns the inline content of a data source. known is false for a file or an environment variable, which
// only Envoy reads. A nil data source is known to be empty.
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

// tlsContext is the TLS context of a listener or of a cluster.
type tlsContext struct {
	node *xds.Node
	// down is set in a listener, up in a cluster.
	down *tlsv3.DownstreamTlsContext
	up   *tlsv3.UpstreamTlsContext
	// quic means that a QUIC transport socket holds the context.
	quic bool
}

// tlsContextAt returns the TLS context at n or around n. ok is false if no context is there, if Envoy ignores the
// context, or if the user's own handshaker decides.
func tlsContextAt(n *xds.Node) (tlsContext, bool) {
	for ; n != nil; n = n.Parent {
		c := tlsContext{node: n}
		other := protoreflect.FullName("envoy.config.cluster.v3.Cluster") // misplaced-extension reports a context on the wrong side
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

// awaitsSecret reports whether the context needs a secret by SDS that the Snapshot does not have.
func (c tlsContext) awaitsSecret(p *validate.LookupPass) bool {
	common := c.common()
	wanted := append(slices.Clone(common.GetTlsCertificateSdsSecretConfigs()),
		common.GetValidationContextSdsSecretConfig(),
		common.GetCombinedValidationContext().GetValidationContextSdsSecretConfig())
	return slices.ContainsFunc(wanted, func(s *tlsv3.SdsSecretConfig) bool {
		return s.GetSdsConfig() != nil && p.Snapshot.Lookup(xds.Secret, s.GetName()) == nil
	})
}

// commonPath returns the path of a field of common_tls_context.
func (c tlsContext) commonPath(field string) xds.Path {
	return c.node.Path().Field("common_tls_context").Field(field)
}

// secretUser is a subscription to a secret, and the resource with the subscription.
type secretUser struct {
	*xds.Subscription
	in *xds.Resource
}

// usersOfSecrets maps the name of a secret to the subscriptions to it.
var usersOfSecrets = validate.NewIndex(nil, func(_ *xds.Snapshot, r *xds.Resource, add func(string, secretUser)) {
	list := r.Facts().Subscriptions
	for i := range list {
		if list[i].Target == xds.Secret {
			add(list[i].Name, secretUser{&list[i], r})
		}
	}
})

// usersOf is the key for validate.Once in secretUsers.
type usersOf struct{ *xds.Resource }

// secretUsers returns the subscriptions that get the secret under judgement. In a bootstrap, secrets of different
// kinds can have the same name. A subscription gets the first secret of the kind that it wants; if no secret has
// this kind, the first of any kind.
func secretUsers(p *validate.LookupPass) []secretUser {
	return validate.Once(&p.Pass, usersOf{p.Resource}, func() (users []secretUser) {
		firsts := make(map[protoreflect.Name]*xds.Resource) // the first secret of each kind
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

// secretFor returns the secret that a subscription gets, chosen as secretUsers says; nil if no secret has the name.
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

// part is a message that a rule judges, either inline in a TLS context or in a secret.
type part struct {
	facts.Place
	// users are the TLS contexts that use the part. A secret without a subscription has none.
	users []tlsContext
	// secret means that the part is in a secret.
	secret bool
	// sds means that a context gets the secret by SDS. Otherwise the secret is static.
	sds bool
}

// report reports a finding at a field of the part. A finding about a secret that nothing uses is a warning, because
// Envoy refuses such a secret only at the first subscription.
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

// secretPart returns the secret under judgement, and its message in a field with the contexts that use it. ok is
// false if the field is not set, or if all subscriptions to the secret want another kind or have no context that
// counts.
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

// certificateRule returns a copy of the rule of, which judges the certificates in TLS contexts and in secrets by
// check.
func certificateRule(of *validate.Rule, check func(*validate.Pass, certificate)) *validate.Rule {
	r := *of
	r.Messages = []protoreflect.FullName{tlsCertificate}
	r.Node = func(p *validate.Pass, n *xds.Node) {
		c, ok := tlsContextAt(n)
		if !ok {
			return // in a secret, or Envoy ignores the context
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

// isPassedOver reports whether a certificate in a TLS context is empty. Envoy skips such a certificate.
func isPassedOver(m *tlsv3.TlsCertificate) bool {
	return m.GetCertificateChain() == nil && m.GetPrivateKey() == nil && m.GetPkcs12() == nil && m.GetPrivateKeyProvider() == nil
}

// leaf returns the parsed certificate. It returns nil if the content is unknown, or if the rule bad-certificate
// reports it.
func (c certificate) leaf() *boring.Certificate {
	leaf, _, err := c.load()
	if err != nil {
		return nil
	}
	return leaf
}

// load parses the certificate. If Envoy can't use the certificate, err is the reason and field is the faulty field.
// leaf and err are nil if the content is unknown.
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

// isEmpty reports whether a data source is certainly empty.
func isEmpty(d *corev3.DataSource) bool {
	data, known := content(d)
	return known && len(data) == 0
}

// dateForm is the form of dates in messages.
const dateForm = "2006-01-02 15:04 MST"
