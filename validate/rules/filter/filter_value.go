package filter

import (
	"encoding/binary"
	"fmt"
	"regexp"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	zstdcompressorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/compression/zstd/compressor/v3"
	zstddecompressorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/compression/zstd/decompressor/v3"
	setfilterstatev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/common/set_filter_state/v3"
	admissionv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/admission_control/v3"
	awslambdav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/aws_lambda/v3"
	awssigningv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/aws_request_signing/v3"
	cdnloopv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/cdn_loop/v3"
	extauthzv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_authz/v3"
	oauth2v3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/oauth2/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"

	"xdspub/diag"
	"xdspub/envoy/envoyapi"
	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var filterValue = &validate.Rule{
	Code: "filter-value",
	Doc: `A setting of a filter has an invalid value.

Envoy rejects the listener. SigV4 signing takes one region, without *; a custom_response takes
neither a fragment nor a rewrite in its redirect; a threshold of admission_control is 1 % or more.
On a route Envoy does not check the paths of ext_authz.

An invalid zstd dictionary crashes Envoy ("Illegal Zstd dictionary").`,
	Checks: []diag.Check{
		{Name: "admission-control", Summary: "A status, a code or a threshold of admission_control is out of range."},
		{Name: "arn", Summary: "An ARN is not that of a function."},
		{Name: "cdn-id", Summary: "A cdn_id is neither a token nor a host."},
		{Name: "custom-redirect", Summary: "custom_response can't send its redirect."},
		{Name: "filter-state-object", Summary: "No factory creates a filter state object."},
		{Name: "id-token-header", Summary: "A header can't carry the ID token of oauth2."},
		{Name: "path-without-slash", Summary: "A path of ext_authz does not begin with a slash."},
		{Name: "query-parameter", Summary: "The mutation of a query parameter appends nothing, or no string."},
		{Name: "signing-region", Summary: "AWS_SIGV4 has a set of regions."},
		{Name: "zstd-dictionary", Summary: "The data is not a zstd dictionary, and crashes Envoy."},
	},
	Messages: []protoreflect.FullName{
		"envoy.config.core.v3.KeyValueAppend",
		"envoy.config.route.v3.RedirectAction",
		"envoy.extensions.compression.zstd.compressor.v3.Zstd",
		"envoy.extensions.compression.zstd.decompressor.v3.Zstd",
		"envoy.extensions.filters.common.set_filter_state.v3.FilterStateValue",
		"envoy.extensions.filters.http.admission_control.v3.AdmissionControl",
		"envoy.extensions.filters.http.aws_lambda.v3.Config",
		"envoy.extensions.filters.http.aws_request_signing.v3.AwsRequestSigning",
		"envoy.extensions.filters.http.cdn_loop.v3.CdnLoopConfig",
		"envoy.extensions.filters.http.ext_authz.v3.HttpService",
		"envoy.extensions.filters.http.oauth2.v3.OAuth2Config",
	},
	Node: func(p *validate.Pass, n *xds.Node) {
		unusable := func(check validate.CheckName, path xds.Path, message, help string) {
			p.Report(validate.Finding{Check: check, Path: n.Path().Join(path), Message: message, Help: help})
		}
		switch m := n.Message.(type) {
		case *corev3.KeyValueAppend:
			checkParameter(m, unusable)
		case *routev3.RedirectAction:
			if n.Field() == "envoy.extensions.http.custom_response.redirect_policy.v3.RedirectPolicy.redirect_action" {
				checkCustomRedirect(m, unusable)
			}
		case *zstdcompressorv3.Zstd:
			checkDictionary("dictionary", m.GetDictionary(), unusable)
		case *zstddecompressorv3.Zstd:
			for i, d := range m.GetDictionaries() {
				checkDictionary(xds.Path("dictionaries").Index(i), d, unusable)
			}
		case *setfilterstatev3.FilterStateValue:
			checkFilterState(p.Envoy, m, unusable)
		case *admissionv3.AdmissionControl:
			checkAdmission(m, unusable)
		case *awslambdav3.Config:
			if arn := m.GetArn(); arn != "" && !isARN(arn) {
				unusable("arn", "arn", fmt.Sprintf("%q is not the ARN "+
					"of a function", arn), "write an ARN such as arn:aws:lambda:eu-west-1:123456789012:function:name")
			}
		case *awssigningv3.AwsRequestSigning:
			if m.GetSigningAlgorithm() == awssigningv3.AwsRequestSigning_AWS_SIGV4 && strings.ContainsAny(m.GetRegion(), "*,") {
				unusable("signing-region", "region", fmt.Sprintf("region %q is a set of regions, which AWS_SIGV4 "+
					"does not support", m.GetRegion()), "write one region, or set signing_algorithm to AWS_SIGV4A")
			}
		case *cdnloopv3.CdnLoopConfig:
			if id := m.GetCdnId(); id != "" && !cdnID.MatchString(id) {
				unusable("cdn-id", "cdn_id", fmt.Sprintf("cdn_id %q is neither a token nor a host with or "+
					"without port", id), "write a value such as cdn.example or cdn.example:443")
			}
		case *extauthzv3.HttpService:
			if n.Field() != "envoy.extensions.filters.http.ext_authz.v3.ExtAuthz.http_service" {
				return // the service is that of a configuration for a route
			}
			for _, path := range []struct{ field, value string }{{"path_prefix", m.GetPathPrefix()}, {"path_override", m.GetPathOverride()}} {
				if path.value != "" && path.value[0] != '/' {
					unusable("path-without-slash", xds.Path(path.field), fmt.Sprintf("%s %q does not begin "+
						"with a slash", path.field, path.value), "write /"+path.value)
				}
			}
		case *oauth2v3.OAuth2Config:
			if header := m.GetForwardIdToken().GetHeader(); strings.HasPrefix(header, ":") || strings.EqualFold(header, "host") {
				unusable("id-token-header", "forward_id_token.header", fmt.Sprintf("header %q can't carry "+
					"the ID token", header), "use another header, such as x-id-token")
			}
		}
	},
}

func checkParameter(m *corev3.KeyValueAppend, unusable func(check validate.CheckName, path xds.Path, message, help string)) {
	_, text := m.GetRecord().GetValue().GetKind().(*structpb.Value_StringValue)
	switch {
	case m.GetRecord() == nil && m.GetEntry() == nil:
		unusable("query-parameter", "", "the mutation appends nothing", "set record")
	case m.GetRecord() != nil && !text:
		unusable("query-parameter", "record", fmt.Sprintf("the value of parameter %q is not a string", m.GetRecord().GetKey()), "put it in quotes")
	}
}

func checkCustomRedirect(m *routev3.RedirectAction, unusable func(check validate.CheckName, path xds.Path, message, help string)) {
	const help = "use path_redirect"
	switch rewrite := m.GetPathRewriteSpecifier().(type) {
	case *routev3.RedirectAction_PathRedirect:
		if strings.Contains(rewrite.PathRedirect, "#") {
			unusable("custom-redirect", "path_redirect", fmt.Sprintf("path_redirect %q has a fragment, which "+
				"custom_response can't send", rewrite.PathRedirect), "remove the # and what follows it")
		}
	case *routev3.RedirectAction_PrefixRewrite:
		unusable("custom-redirect", "prefix_rewrite", "custom_response can't rewrite a prefix", help)
	case *routev3.RedirectAction_RegexRewrite:
		unusable("custom-redirect", "regex_rewrite", "custom_response can't rewrite a path", help)
	}
}

// dictionaryMagic begins a zstd dictionary. The ID of the dictionary follows.
const dictionaryMagic = 0xEC30A437

func checkDictionary(path xds.Path, source *corev3.DataSource, unusable func(check validate.CheckName, path xds.Path, message, help string)) {
	content, ok := facts.InlineContent(source)
	if ok && (len(content) < 8 || binary.LittleEndian.Uint32(content) != dictionaryMagic || binary.LittleEndian.Uint32(content[4:]) == 0) {
		unusable("zstd-dictionary", path, "the data is not a zstd dictionary: Envoy crashes", "create it with zstd --train")
	}
}

func checkFilterState(v *envoyapi.Version, m *setfilterstatev3.FilterStateValue, unusable func(check validate.CheckName, path xds.Path, message, help string)) {
	factory, path := m.GetFactoryKey(), xds.Path("factory_key")
	if factory == "" {
		factory, path = m.GetObjectKey(), "object_key"
	}
	if _, known := v.ExtensionNamed("filter_state.object", factory); factory != "" && !known {
		unusable("filter-state-object", path, fmt.Sprintf("no factory creates the filter "+
			"state object %q", factory), "set factory_key; envoy.string creates an object from any text")
	}
}

func checkAdmission(m *admissionv3.AdmissionControl, unusable func(check validate.CheckName, path xds.Path, message, help string)) {
	criteria := xds.Path("success_criteria")
	for i, r := range m.GetSuccessCriteria().GetHttpCriteria().GetHttpSuccessStatus() {
		if r.GetStart() < 100 || r.GetEnd() > 600 || r.GetStart() > r.GetEnd() {
			unusable("admission-control", criteria.Field("http_criteria").Field("http_success_status").Index(i),
				fmt.Sprintf("[%d, %d) is not a range of HTTP statuses", r.GetStart(), r.GetEnd()),
				"write a start of at least 100 and an end of at most 600; the end is excluded")
		}
	}
	for i, code := range m.GetSuccessCriteria().GetGrpcCriteria().GetGrpcSuccessStatus() {
		if code > 16 {
			unusable("admission-control", criteria.Field("grpc_criteria").Field("grpc_success_status").Index(i),
				fmt.Sprintf("%d is not a gRPC status code", code), "write a code from 0 to 16")
		}
	}
	if t := m.GetSrThreshold(); t != nil && t.GetDefaultValue().GetValue() < 1 {
		unusable("admission-control", "sr_threshold", fmt.Sprintf("sr_threshold %v "+
			"is below 1 %%", t.GetDefaultValue().GetValue()), "write a percentage: 95 means 95 %")
	}
}

func isARN(s string) bool {
	return strings.HasPrefix(s, "arn:") && strings.Count(s, ":") >= 6
}

// cdnID matches the valid values of cdn_id: a token or an address in brackets, with or without a port.
var cdnID = regexp.MustCompile("^(?:[!#$%&'*+\\-.^_`|~0-9A-Za-z]+|\\[[0-9A-Fa-f:.]*\\])(?::[0-9]*)?$")
