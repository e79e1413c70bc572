package tls

import (
	"slices"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

// validation is a validation context that a rule judges by itself: inline, the default of a combined one, or in a
// secret.
type validation struct {
	*tlsv3.CertificateValidationContext
	part
	// replaced means that Envoy uses the trusted_ca of a secret instead.
	replaced bool
}

// The names of the certificate validators that Envoy has.
const (
	defaultValidator = "envoy.tls.cert_validator.default"
	spiffeValidator  = "envoy.tls.cert_validator.spiffe"
	moduleValidator  = "envoy.tls.cert_validator.dynamic_modules"
)

// isCustom reports whether another validator than Envoy's default verifies peers.
func isCustom(m *tlsv3.CertificateValidationContext) bool {
	return m.GetCustomValidatorConfig() != nil && m.GetCustomValidatorConfig().GetName() != defaultValidator
}

// validationRule returns a copy of the rule of, which also judges the validation contexts in TLS contexts and in
// secrets by check.
func validationRule(of *validate.Rule, check func(*validate.Pass, validation)) *validate.Rule {
	r := *of
	r.Messages = append(slices.Clone(of.Messages), tlsValidation)
	r.Lookup = func(p *validate.LookupPass, n *xds.Node) {
		m, ok := n.Message.(*tlsv3.CertificateValidationContext)
		if !ok {
			of.Lookup(p, n)
			return
		}
		c, ok := tlsContextAt(n)
		if !ok {
			return // in a secret, or Envoy ignores the context
		}
		v := validation{CertificateValidationContext: m, part: part{Place: facts.Place{Resource: p.Resource, Path: n.Path()}, users: []tlsContext{c}}}
		if sds := c.common().GetCombinedValidationContext().GetValidationContextSdsSecretConfig(); sds != nil {
			secret, _ := validationSecret(p, sds)
			v.replaced = secret.GetValidationContext().GetTrustedCa() != nil
		}
		check(&p.Pass, v)
	}
	r.Resource = func(p *validate.LookupPass) {
		if s, t, ok := secretPart(p, "validation_context"); ok {
			check(&p.Pass, validation{CertificateValidationContext: s.GetValidationContext(), part: t})
		}
	}
	return &r
}

// validationSecret returns the secret with a validation context that a subscription gets. It returns nil if the
// Snapshot does not have the secret. A static secret of another kind is nil, too; by SDS, Envoy reads such a secret
// as an empty validation context.
func validationSecret(p *validate.LookupPass, sds *tlsv3.SdsSecretConfig) (*tlsv3.Secret, *xds.Resource) {
	r := secretFor(p, sds.GetName(), "validation_context")
	if r == nil || sds.GetSdsConfig() == nil && xds.SecretKind(r.Message().(*tlsv3.Secret)) != "validation_context" {
		return nil, nil
	}
	return r.Message().(*tlsv3.Secret), r
}

// peers holds the settings by which a TLS context verifies peers: those in the context, merged with those of a
// secret.
type peers struct {
	*tlsv3.CertificateValidationContext
	inline     *tlsv3.CertificateValidationContext
	inlinePath xds.Path
	secret     *xds.Resource
}

// peersOf returns the settings by which a context verifies peers. known is false if a secret with settings is not
// in the Snapshot.
func peersOf(p *validate.LookupPass, c tlsContext) (v peers, known bool) {
	secretOf := func(sds *tlsv3.SdsSecretConfig) *tlsv3.CertificateValidationContext {
		var secret *tlsv3.Secret
		secret, v.secret = validationSecret(p, sds)
		return secret.GetValidationContext()
	}
	switch t := c.common().GetValidationContextType().(type) {
	case nil:
		return v, true
	case *tlsv3.CommonTlsContext_ValidationContext:
		v.inline, v.inlinePath = t.ValidationContext, c.commonPath("validation_context")
		v.CertificateValidationContext = v.inline
		return v, true
	case *tlsv3.CommonTlsContext_ValidationContextSdsSecretConfig:
		v.CertificateValidationContext = secretOf(t.ValidationContextSdsSecretConfig)
		return v, v.secret != nil
	case *tlsv3.CommonTlsContext_CombinedValidationContext:
		v.inline = t.CombinedValidationContext.GetDefaultValidationContext()
		v.inlinePath = c.commonPath("combined_validation_context").Field("default_validation_context")
		fromSecret := secretOf(t.CombinedValidationContext.GetValidationContextSdsSecretConfig())
		all := &tlsv3.CertificateValidationContext{}
		proto.Merge(all, v.inline)
		proto.Merge(all, fromSecret)
		v.CertificateValidationContext = all
		return v, v.secret != nil
	default: // Envoy ignores the other fields
		return v, true
	}
}

// report reports a finding at a field, in the secret or in the context, whichever sets the field.
func (v peers) report(p *validate.Pass, field protoreflect.Name, f validate.Finding) {
	m := v.inline.ProtoReflect()
	f.Path = v.inlinePath.Field(string(field))
	if v.secret != nil && !m.Has(m.Descriptor().Fields().ByName(field)) {
		f.Resource, f.Path = v.secret, xds.Path("validation_context").Field(string(field))
	}
	p.Report(f)
}
