package admit

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/structpb"

	"xdspub/xds"
	"xdspub/xds/params"
)

// NodeParameter sets a dynamic parameter from a field of the client's node, for clients that send no dynamic
// parameters.
type NodeParameter struct {
	Key   string
	field NodeField
}

// ParseNodeParameter parses a NodeParameter, written as KEY=FIELD.
func ParseNodeParameter(text string) (NodeParameter, error) {
	key, field, ok := strings.Cut(text, "=")
	if !ok || key == "" {
		return NodeParameter{}, errors.New("write KEY=FIELD, such as env=metadata.env")
	}
	f, err := ParseNodeField(field)
	return NodeParameter{key, f}, err
}

// scalar returns a string, a boolean or a number as text, and false for any other value.
func scalar(v *structpb.Value) (string, bool) {
	switch v := v.GetKind().(type) {
	case *structpb.Value_StringValue:
		return v.StringValue, true
	case *structpb.Value_BoolValue:
		return strconv.FormatBool(v.BoolValue), true
	case *structpb.Value_NumberValue:
		return strconv.FormatFloat(v.NumberValue, 'f', -1, 64), true
	}
	return "", false
}

// Parameters returns the dynamic parameters of a client that sends none: Default, overridden by
// NodeParameters. The client's node may be nil.
func (o Options) Parameters(n *corev3.Node) params.Parameters {
	p := make(params.Parameters)
	maps.Copy(p, o.Default)
	for _, of := range o.NodeParameters {
		if is, ok := of.field.Text(n); ok {
			p[of.Key] = is
		}
	}
	return p
}

// ParamRule permits a value of a dynamic parameter to clients whose certificate has a name. The value and the
// name are patterns as in a NodeRule.
type ParamRule struct {
	Key string
	NodeRule
}

// ParseParamRule parses a ParamRule, written as KEY=VALUE=SAN.
func ParseParamRule(text string) (ParamRule, error) {
	key, rule, ok := strings.Cut(text, "=")
	r, err := ParseNodeRule(rule)
	if !ok || key == "" || err != nil {
		return ParamRule{}, errors.New("write KEY=VALUE=SAN, such as env=prod=spiffe://example.org/prod/*, with one * or one ** in VALUE and in SAN at most")
	}
	return ParamRule{key, r}, nil
}

// mostParameters is the largest number of parameters in a resource locator, far above real use.
const mostParameters = 100

// locates judges the resource locators of a request.
func (s *Stream) locates(list []*discoveryv3.ResourceLocator) error {
	for _, l := range list {
		switch most := s.judge.options.NameLength; {
		case l.GetName() == "":
			return s.refuse(codes.InvalidArgument, "a resource locator without a name: set the name")
		case len(l.GetName()) > most:
			return s.refuse(codes.InvalidArgument, "a resource name of %d bytes: %d are allowed; see --limit name-bytes", len(l.GetName()), most)
		case len(l.GetDynamicParameters()) > mostParameters:
			return s.refuse(codes.InvalidArgument, "a resource locator with %d dynamic parameters: %d are allowed",
				len(l.GetDynamicParameters()), mostParameters)
		}
		for key, value := range l.GetDynamicParameters() {
			if len(key) > params.MaxText || len(value) > params.MaxText {
				return s.refuse(codes.InvalidArgument, "a dynamic parameter of %d bytes: %d are allowed in a key, and in a value",
					max(len(key), len(value)), params.MaxText)
			}
		}
		if err := s.judgeParameters(l.GetDynamicParameters()); err != nil {
			return err
		}
	}
	return nil
}

// judgeParameters judges the parameters of the client by Options.Params. A client of a Unix socket may have
// any parameters.
func (s *Stream) judgeParameters(p params.Parameters) error {
	for key, value := range p {
		if s.judge.hasRule(key) && !s.client.Local && !s.judge.allowsParam(s.client, key, value) {
			return s.refuse(codes.PermissionDenied, "the certificate of the client does not allow the dynamic parameter %.100q: see --allow-param",
				key+"="+value)
		}
	}
	return nil
}

// hasRule reports whether Options.Params has a rule for a parameter.
func (j *Judge) hasRule(key string) bool {
	return slices.ContainsFunc(j.options.Params, func(r ParamRule) bool { return r.Key == key })
}

// allowsParam reports whether a rule permits a parameter to a name in the client's certificate.
func (j *Judge) allowsParam(c Client, key, value string) bool {
	if c.Certificate == nil {
		return false
	}
	return slices.ContainsFunc(names(c.Certificate), func(name string) bool {
		return slices.ContainsFunc(j.options.Params, func(r ParamRule) bool { return r.Key == key && r.allows(value, name) })
	})
}

// SecretOf judges whether the client may receive a resource that holds a secret. sets are the parameter sets
// of the client's subscriptions. A client that claims env=prod must not get production keys for the claim
// alone. So the resource must match one of the sets, and for each parameter that constrains the secret
// (xds.Resource.SecretFor), the value must be permitted by the client's certificate, or be the node id, which
// the certificate permits. SecretOf is safe for concurrent use.
func (s *Stream) SecretOf(r *xds.Resource, sets []params.Parameters) error {
	if err := s.Secret(); err != nil || s.client.Local {
		return err
	}
	if by := s.judge.options.AggregateBy; len(by) > 0 && (len(s.judge.options.Nodes) == 0 || !slices.Contains(by, "id")) {
		return s.refuse(codes.PermissionDenied, "this %s holds a secret for clients with some nodes only, and no certificate shows that the node of "+
			"this client is true: add id to --aggregate-by, and see --allow-node", r.Type.Noun)
	}
	if r.For.None() {
		return nil
	}
	sets = slices.DeleteFunc(slices.Clone(sets), func(p params.Parameters) bool { return !r.For.Matches(p) })
	if len(sets) == 0 {
		return s.refuse(codes.PermissionDenied, "this %s holds a secret, and is only for clients with other dynamic parameters", r.Type.Noun)
	}
	for _, key := range r.SecretFor().Keys() {
		has := func(p params.Parameters) bool { _, ok := p[key]; return ok }
		if slices.ContainsFunc(sets, has) && !s.judge.hasRule(key) && !s.byID(key) {
			return s.refuse(codes.PermissionDenied, "this %s holds a secret for some clients only, and no certificate shows "+
				"that the dynamic parameter %.100q of this client is true: see --allow-param", r.Type.Noun, key)
		}
	}
	return nil
}

// byID reports whether a parameter derives from the id of the client's node, and the client's certificate
// permits this id.
func (s *Stream) byID(key string) bool {
	return !s.located.Load() && len(s.judge.options.Nodes) > 0 && slices.Contains(s.judge.options.NodeParameters, NodeParameter{key, "id"})
}
