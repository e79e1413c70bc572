package transition

import (
	"fmt"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/xds"
)

var secretKindChanged = &Rule{
	Code: "secret-kind-changed",
	Doc: `A secret changes its kind while a running resource uses it.

xdspub publishes secrets before listeners, so running ones get the new secret first, and keep it
while they drain. Envoy reads a secret of another kind as an empty one. If it needs a
certificate it rejects the secret ("Failed to load incomplete private key from path"). If it needs
a validation context it accepts the secret and no longer verifies peers. Ticket keys and generic
secrets become empty (a warning). Give the new secret a new name.`,
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
				consequence = "Envoy would reject it"
			case "validation_context":
				consequence = "it would no longer verify peers"
			default:
				consequence, f.Warning = "it gets an empty one", true
			}
			f.Message = fmt.Sprintf("running %s uses this secret as %s: %s", s.Resource.Key, noun(want), consequence)
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
