package tls

import (
	"fmt"
	"strings"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var secretKind = &validate.Rule{
	Code:     "secret-kind",
	Severity: diag.Error,
	Doc: `A secret is empty, or of the wrong kind for its use.

A secret is a TLS certificate, a validation context, session ticket keys or a generic secret.
Envoy reads a secret of the wrong kind as an empty one. If it needs a certificate it rejects the
secret ("Failed to load incomplete private key from path"). If it needs a validation context it
accepts the secret and does not verify the peer; ticket keys and generic secrets are empty then:
these are warnings.

An empty secret in the bootstrap keeps Envoy from starting ("Secret type not implemented"). Envoy
finds a static secret by kind and name: with the wrong kind it rejects the resource that uses it
("Unknown static certificate validation context"), and crashes if a generic secret is missing.`,
	Resource: func(p *validate.LookupPass) {
		secret, ok := p.Resource.Message().(*tlsv3.Secret)
		if !ok {
			return
		}
		r, kind, users := p.Resource, xds.SecretKind(secret), secretUsers(p)
		switch {
		case kind == "" && r.DeliveredBy == xds.StaticResources:
			p.Report(validate.Finding{Message: "the secret is empty: " + r.Refusal(), Help: kindsHelp})
			return
		case kind == "" && len(users) == 0:
			p.Report(validate.Finding{Message: "the secret is empty", Help: kindsHelp, Warning: true})
		}
		for _, u := range users {
			want := xds.WantedSecret(u.Node.Field())
			if kind == want {
				continue
			}
			static := u.Source.GetConfigSourceSpecifier() == nil
			f := validate.Finding{
				Resource: u.in, Path: u.NamePath,
				Message: fmt.Sprintf("secret %q is %s, not %s: %s", u.Name, noun(kind), noun(want), consequence(u, r, want)),
				Help:    "refer to a secret of that kind, or change the secret",
				Related: facts.Related(r, "name", "the secret is here"),
				Warning: want != "tls_certificate" && !static,
			}
			if kind == "" {
				f.Resource, f.Path, f.Help = r, "", kindsHelp
				f.Related = facts.Related(u.in, u.NamePath, "it is used here")
			}
			p.Report(f)
		}
	},
}

const kindsHelp = "set tls_certificate, validation_context, session_ticket_keys or generic_secret"

func noun(kind protoreflect.Name) string {
	switch kind {
	case "":
		return "empty"
	case "session_ticket_keys":
		return "session ticket keys"
	default:
		return "a " + strings.ReplaceAll(strings.ReplaceAll(string(kind), "tls", "TLS"), "_", " ")
	}
}

// consequence returns Envoy's reaction to a secret of another kind than want.
func consequence(u secretUser, secret *xds.Resource, want protoreflect.Name) string {
	switch static := u.Source.GetConfigSourceSpecifier() == nil; {
	case static && want == "generic_secret":
		return "Envoy crashes"
	case static:
		return u.in.Refusal()
	case want == "tls_certificate":
		return secret.Refusal()
	case want == "validation_context":
		return "Envoy does not verify the peer"
	default:
		return "Envoy uses an empty one"
	}
}
