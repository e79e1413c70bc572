package diff

import (
	"strings"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	runtimev3 "github.com/envoyproxy/go-control-plane/envoy/service/runtime/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"xdspub/xds"
)

// secret adds the effect of a changed secret. Connections that exist keep the old secret.
func (l *effectList) secret(e xds.Edited) {
	switch {
	case e.Was == nil:
		l.add(e.Key(), Effect{Kind: Applied, Is: secretText(e.Is)}, "is new: %s", secretText(e.Is))
	case e.Is == nil:
		l.add(e.Key(), Effect{Kind: Applied, Was: secretText(e.Was)}, "is removed: %s", secretText(e.Was))
	default:
		was, is := secretText(e.Was), secretText(e.Is)
		if was == is { // such as another key for the certificate
			was, is = was+", "+wholeText(e.Was), is+", "+wholeText(e.Is)
		}
		l.add(e.Key(), Effect{Kind: SecretRotates, Was: was, Is: is}, "rotates from %s to %s; connections keep the old one until they end", was, is)
	}
}

// secretText describes a secret without its content.
func secretText(r *xds.Resource) string {
	s := r.Concealed(fingerprint).Message().(*tlsv3.Secret)
	if c := s.GetTlsCertificate(); c != nil {
		for _, source := range []string{c.GetCertificateChain().GetInlineString(), c.GetCertificateChain().GetFilename()} {
			if source != "" {
				return source
			}
		}
	}
	kind := xds.SecretKind(s)
	if kind == "" {
		return "an empty secret"
	}
	return strings.ReplaceAll(string(kind), "_", " ") + " " + wholeText(r)
}

// wholeText returns the fingerprint of all of a secret.
func wholeText(r *xds.Resource) string {
	return fingerprint([]byte(canonical(r.Message().ProtoReflect())))
}

// runtime adds the keys of a runtime layer whose values change.
func (l *effectList) runtime(e xds.Edited) {
	was, is := layerOf(e.Was), layerOf(e.Is)
	for _, k := range keys(was, is) {
		a, b := was[k], is[k]
		if a == b {
			continue
		}
		before, after := a, b
		if a == "" {
			before = "unset"
		}
		if b == "" {
			after = "unset"
		}
		l.add(e.Key(), Effect{Kind: RuntimeChanges, Part: k, Was: a, Is: b}, ": %s changes from %s to %s", k, before, after)
	}
}

// layerOf returns the values of a layer by key, as Envoy names the keys.
func layerOf(r *xds.Resource) map[string]string {
	all := make(map[string]string)
	if r != nil {
		flatten(all, "", r.Message().(*runtimev3.Runtime).GetLayer())
	}
	return all
}

func flatten(all map[string]string, prefix string, s *structpb.Struct) {
	c := &comparison{}
	for k, v := range s.GetFields() {
		if inner := v.GetStructValue(); inner != nil && !isFraction(inner) {
			flatten(all, prefix+k+".", inner)
		} else {
			all[prefix+k] = c.message(v.ProtoReflect())
		}
	}
}

// isFraction reports whether an object is a fraction. A fraction is the value of one runtime key.
func isFraction(s *structpb.Struct) bool {
	return s.GetFields()["numerator"] != nil || s.GetFields()["denominator"] != nil
}
