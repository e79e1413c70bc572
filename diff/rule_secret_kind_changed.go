package diff

import (
	"fmt"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/xds"
)

var secretKindChanged = &Rule{
	Code: "secret-kind-changed",
	Doc: `A secret changes its kind while a running resource uses it.

Secrets go out before clusters and listeners, so that those which run get it first, and
hold on to it while they drain. Envoy takes another kind for an empty one: where a
certificate is wanted it refuses the secret ("Failed to load incomplete private key from
path"); where a validation context is wanted it takes the secret, and from then on
verifies no peer at all. Ticket keys and generic secrets are empty then; these are
warnings.`,
	Run: func(p *Pass) error {
		subscribers, err := p.subscribers(xds.Secret)
		if err != nil {
			return err
		}
		for _, s := range subscribers {
			r := p.New.Lookup(xds.Secret, s.Name)
			if r == nil {
				continue
			}
			want, kind := xds.WantedSecret(s.Node.Field()), xds.SecretKind(r.Message().(*tlsv3.Secret))
			if kind == want {
				continue
			}
			f := Finding{Resource: r, Path: xds.Path(kind), Help: "give the new secret a new name"}
			var consequence string
			switch want {
			case "tls_certificate":
				consequence = "Envoy would refuse it"
			case "validation_context":
				consequence = "it would verify no peer from then on"
			default:
				consequence, f.Warning = "it gets an empty one", true
			}
			f.Message = fmt.Sprintf("%s runs with this secret as %s: %s", s.Resource.Key, noun(want), consequence)
			p.Report(f)
		}
		return nil
	},
}

func noun(kind protoreflect.Name) string {
	switch kind {
	case "tls_certificate":
		return "a TLS certificate"
	case "session_ticket_keys":
		return "session ticket keys"
	case "validation_context":
		return "a validation context"
	default:
		return "a generic secret"
	}
}
