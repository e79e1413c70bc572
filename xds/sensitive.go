package xds

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	udpaannotations "github.com/cncf/xds/go/udpa/annotations"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
)

// holdsSecret reports whether the node's message itself carries secret content: a sensitive field is set. A
// DataSource that names a file or a variable is no secret content. An unreadable payload may hold a secret, so
// holdsSecret reports true for its Any.
func holdsSecret(n *Node) bool {
	return n.Err != nil || slices.ContainsFunc(n.shape.sensitive, func(fd protoreflect.FieldDescriptor) bool {
		r := n.Message.ProtoReflect()
		return r.Has(fd) && holdsContent(fd, r.Get(fd))
	})
}

// OfSecret reports whether the node is a field of a certificate, a key or another secret, or of the settings
// that verify them: a file that such a field names exists on some machines only.
func (n *Node) OfSecret() bool {
	return n.Parent != nil && (strings.HasPrefix(string(n.Parent.Name()), "envoy.extensions.transport_sockets.tls.") ||
		slices.ContainsFunc(n.Parent.shape.sensitive, func(fd protoreflect.FieldDescriptor) bool { return fd.FullName() == n.Field() }))
}

var credentialHeaders = map[string]bool{
	"authorization": true, "proxy-authorization": true, "cookie": true, "set-cookie": true,
	"x-api-key": true, "api-key": true, "apikey": true, "x-auth-token": true, "x-access-token": true,
	"x-amz-security-token": true, "x-csrf-token": true,
}

// holdsCredential reports whether the value of a header has text that may be a credential. The name of a scheme,
// such as Bearer, and commands that Envoy replaces, such as %REQ(x-token)%, are no credentials.
func holdsCredential(value string) bool {
	text := strings.TrimSpace(command.ReplaceAllString(value, ""))
	return text != "" && !schemes[strings.ToLower(text)]
}

var (
	command = regexp.MustCompile(`%[A-Z_]+(?:\([^)]*\))?(?::[0-9]+)?%`)
	schemes = map[string]bool{"basic": true, "bearer": true, "digest": true, "negotiate": true, "token": true}
)

// holdsContent reports whether the value of a sensitive field is content itself.
func holdsContent(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
	content := func(m protoreflect.Message) bool {
		source, ok := m.Interface().(*corev3.DataSource)
		return !ok || source.GetInlineBytes() != nil || source.GetInlineString() != ""
	}
	switch {
	case fd.IsMap():
		found := fd.MapValue().Message() == nil
		if !found {
			v.Map().Range(func(_ protoreflect.MapKey, entry protoreflect.Value) bool {
				found = content(entry.Message())
				return !found
			})
		}
		return found
	case fd.Message() == nil:
		return true
	case fd.IsList():
		for i := range v.List().Len() {
			if content(v.List().Get(i).Message()) {
				return true
			}
		}
		return false
	default:
		return content(v.Message())
	}
}

// unmarked has the fields for secrets that the API does not mark as sensitive.
var unmarked = map[protoreflect.FullName]bool{
	"envoy.config.core.v3.GrpcService.GoogleGrpc.CallCredentials.GoogleIAMCredentials.authorization_token":                     true,
	"envoy.config.core.v3.GrpcService.GoogleGrpc.CallCredentials.ServiceAccountJWTAccessCredentials.json_key":                  true,
	"envoy.config.core.v3.GrpcService.GoogleGrpc.CallCredentials.access_token":                                                 true,
	"envoy.config.core.v3.GrpcService.GoogleGrpc.CallCredentials.google_refresh_token":                                         true,
	"envoy.config.trace.v3.LightstepConfig.access_token":                                                                       true,
	"envoy.extensions.filters.http.aws_lambda.v3.Credentials.secret_access_key":                                                true,
	"envoy.extensions.filters.http.aws_lambda.v3.Credentials.session_token":                                                    true,
	"envoy.extensions.grpc_service.call_credentials.access_token.v3.AccessTokenCredentials.token":                              true,
	"envoy.extensions.grpc_service.call_credentials.google_iam.v3.GoogleIamCredentials.authorization_token":                    true,
	"envoy.extensions.grpc_service.call_credentials.google_refresh_token.v3.GoogleRefreshTokenCredentials.token":               true,
	"envoy.extensions.grpc_service.call_credentials.service_account_jwt_access.v3.ServiceAccountJwtAccessCredentials.json_key": true,
}

// sensitiveFields returns the fields of a message that are for secrets.
func sensitiveFields(md protoreflect.MessageDescriptor) (fields []protoreflect.FieldDescriptor) {
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		if o, _ := fd.Options().(*descriptorpb.FieldOptions); o.GetDebugRedact() || unmarked[fd.FullName()] ||
			proto.GetExtension(o, udpaannotations.E_Sensitive).(bool) {
			fields = append(fields, fd)
		}
	}
	return fields
}

// SensitiveFieldName reports whether any message of the API has a sensitive field of a name, in its proto or JSON
// form. Use SensitiveFieldName for undecodable text, which has no descriptor. A sensitive Any has the name
// typed_config, like other Anys: the name of the field around its message counts instead.
func SensitiveFieldName(name string) bool { return sensitiveNames()[name] }

var sensitiveNames = sync.OnceValue(func() map[string]bool {
	names := make(map[string]bool)
	add := func(fd protoreflect.FieldDescriptor) {
		names[string(fd.Name())], names[fd.JSONName()] = true, true
	}
	around := make(map[protoreflect.FullName]bool)
	protoregistry.GlobalTypes.RangeMessages(func(mt protoreflect.MessageType) bool {
		for _, fd := range sensitiveFields(mt.Descriptor()) {
			if fd.Message() != nil && fd.Message().FullName() == "google.protobuf.Any" {
				around[mt.Descriptor().FullName()] = true
			} else {
				add(fd)
			}
		}
		return true
	})
	protoregistry.GlobalTypes.RangeMessages(func(mt protoreflect.MessageType) bool {
		for _, fd := range messageFields(mt.Descriptor()) {
			if around[fd.Message().FullName()] {
				add(fd)
			}
		}
		return true
	})
	return names
})

// SensitiveFieldName is the function SensitiveFieldName for the user's own types, too.
func (g *Registry) SensitiveFieldName(name string) bool {
	return SensitiveFieldName(name) || g != nil && g.sensitive[name]
}

// ownSensitiveNames adds to names the sensitive fields of messages, and of messages nested in them, in proto and
// JSON form.
func ownSensitiveNames(list protoreflect.MessageDescriptors, names map[string]bool) {
	for i := range list.Len() {
		for _, fd := range sensitiveFields(list.Get(i)) {
			names[string(fd.Name())], names[fd.JSONName()] = true, true
		}
		ownSensitiveNames(list.Get(i).Messages(), names)
	}
}

// IsFieldName reports whether any message of the API has a field of a name, in its proto or JSON form. "@type"
// counts as a field.
func IsFieldName(name string) bool { return fieldNames()[name] }

var fieldNames = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{"@type": true}
	protoregistry.GlobalTypes.RangeMessages(func(mt protoreflect.MessageType) bool {
		fields := mt.Descriptor().Fields()
		for i := range fields.Len() {
			names[string(fields.Get(i).Name())], names[fields.Get(i).JSONName()] = true, true
		}
		return true
	})
	return names
})
