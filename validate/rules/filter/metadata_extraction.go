package filter

import (
	"fmt"

	headerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_to_metadata/v3"
	jsonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/json_to_metadata/v3"
	thriftmetadatav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/thrift_to_metadata/v3"
	thriftheaderv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/thrift_proxy/filters/header_to_metadata/v3"
	payloadv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/thrift_proxy/filters/payload_to_metadata/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var metadataExtraction = &validate.Rule{
	Code: "metadata-extraction",
	Doc: `A metadata extraction rule is incomplete or has conflicting settings.

Rules of header_to_metadata, json_to_metadata, thrift_to_metadata and the Thrift filters
header_to_metadata and payload_to_metadata say what to write if the value is present
(on_header_present, on_present) or missing. Envoy rejects a rule without both ("rule for
header 'a' has neither ` + "`" + `on_header_present` + "`" + ` nor ` + "`" + `on_header_missing` + "`" + ` set"), and an action for
a missing or invalid value that has no value to write ("Cannot specify on_header_missing
rule with an empty value").

A rule of header_to_metadata reads a header or a cookie, not both; it can remove a header
only; and it writes either a fixed value or one that a regular expression rewrites. A
configuration for a route needs rules, and so does thrift_to_metadata everywhere. The content
parser of sse_to_metadata needs one of on_present, on_missing and on_error, and does not
accept an action without a value.`,
	Checks: []diag.Check{
		{Name: "no-action", Summary: "A rule writes nothing."},
		{Name: "no-rules", Summary: "A configuration has no rules."},
		{Name: "no-value", Summary: "What a rule writes has no value."},
		{Name: "source", Summary: "A rule does not read exactly one header or cookie, or removes a cookie."},
		{Name: "two-values", Summary: "A rule has both a value and a regex_value_rewrite."},
	},
	Messages: []protoreflect.FullName{
		"envoy.extensions.filters.http.header_to_metadata.v3.Config",
		"envoy.extensions.filters.http.header_to_metadata.v3.Config.Rule",
		"envoy.extensions.filters.http.json_to_metadata.v3.JsonToMetadata",
		"envoy.extensions.filters.http.json_to_metadata.v3.JsonToMetadata.Rule",
		"envoy.extensions.filters.http.thrift_to_metadata.v3.Rule",
		"envoy.extensions.filters.http.thrift_to_metadata.v3.ThriftToMetadata",
		"envoy.extensions.filters.network.thrift_proxy.filters.header_to_metadata.v3.HeaderToMetadata.Rule",
		"envoy.extensions.filters.network.thrift_proxy.filters.payload_to_metadata.v3.PayloadToMetadata.Rule",
	},
	Node: func(p *validate.Pass, n *xds.Node) {
		wrong := func(check validate.CheckName, path xds.Path, message, help string) {
			p.Report(validate.Finding{Check: check, Path: n.Path().Join(path), Message: message, Help: help})
		}
		const addRules = "set request_rules or response_rules"
		switch m := n.Message.(type) {
		case *headerv3.Config:
			if facts.IsPerRoute(n) && len(m.GetRequestRules()) == 0 && len(m.GetResponseRules()) == 0 {
				wrong("no-rules", "", "header_to_metadata of a route has no rules", addRules)
			}
		case *jsonv3.JsonToMetadata:
			if facts.IsPerRoute(n) && m.GetRequestRules() == nil && m.GetResponseRules() == nil {
				wrong("no-rules", "", "json_to_metadata of a route has no rules", addRules)
			}
		case *thriftmetadatav3.ThriftToMetadata:
			if !facts.IsPerRoute(n) && len(m.GetRequestRules()) == 0 && len(m.GetResponseRules()) == 0 { // otherwise reported by per-filter-config
				wrong("no-rules", "", "thrift_to_metadata has no rules", addRules)
			}
		case *headerv3.Config_Rule:
			headerExtraction(m, wrong)
		case *jsonv3.JsonToMetadata_Rule:
			if n.Field() == "envoy.extensions.content_parsers.json.v3.JsonContentParser.RuleConfig.rule" {
				if m.GetOnPresent() == nil && m.GetOnMissing() == nil && m.GetOnError() == nil {
					wrong("no-action", "", "the rule has no on_present, on_missing or on_error", "add one of them, with the metadata to write")
				}
				return
			}
			written{"on_present", m.GetOnPresent() != nil, "on_missing", m.GetOnMissing() != nil, hasNoValue(m.GetOnMissing())}.check(wrong)
			if hasNoValue(m.GetOnError()) {
				wrong("no-value", "on_error", "on_error has no value", "set value to what Envoy must write")
			}
		case *thriftmetadatav3.Rule:
			written{"on_present", m.GetOnPresent() != nil, "on_missing", m.GetOnMissing() != nil, hasNoValue(m.GetOnMissing())}.check(wrong)
		case *thriftheaderv3.HeaderToMetadata_Rule:
			written{"on_present", m.GetOnPresent() != nil, "on_missing", m.GetOnMissing() != nil, m.GetOnMissing().GetValue() == ""}.check(wrong)
		case *payloadv3.PayloadToMetadata_Rule:
			written{"on_present", m.GetOnPresent() != nil, "on_missing", m.GetOnMissing() != nil, m.GetOnMissing().GetValue() == ""}.check(wrong)
		}
	},
}

// written describes what a rule writes to the metadata if the value is present, and if it is missing. present and
// missing are the names of the two fields, and hasPresent and hasMissing tell whether they are set.
type written struct {
	present    string
	hasPresent bool
	missing    string
	hasMissing bool
	// withoutValue means that the field missing is set without a value to write.
	withoutValue bool
}

func (w written) check(wrong func(check validate.CheckName, path xds.Path, message, help string)) {
	switch {
	case !w.hasPresent && !w.hasMissing:
		wrong("no-action", "", fmt.Sprintf("the rule has neither %s nor %s", w.present, w.missing), "add one of them, with the metadata to write")
	case w.hasMissing && w.withoutValue:
		wrong("no-value", xds.Path(w.missing), w.missing+" has no value", "set value to what Envoy must write")
	}
}

func headerExtraction(m *headerv3.Config_Rule, wrong func(check validate.CheckName, path xds.Path, message, help string)) {
	switch {
	case m.GetHeader() != "" && m.GetCookie() != "":
		wrong("source", "cookie", fmt.Sprintf("the rule reads both header %q and cookie %q", m.GetHeader(), m.GetCookie()), "write two rules")
	case m.GetHeader() == "" && m.GetCookie() == "":
		wrong("source", "", "the rule reads neither a header nor a cookie", "set header or cookie")
	case m.GetCookie() != "" && m.GetRemove():
		wrong("source", "remove", fmt.Sprintf("cookie %q can't be removed", m.GetCookie()), "remove this field; it works for headers only")
	}
	if m.GetOnHeaderPresent().GetValue() != "" && m.GetOnHeaderPresent().GetRegexValueRewrite() != nil {
		wrong("two-values", "on_header_present.regex_value_rewrite", "on_header_present has both value and regex_value_rewrite", "keep one of them")
	}
	written{
		"on_header_present", m.GetOnHeaderPresent() != nil, "on_header_missing", m.GetOnHeaderMissing() != nil,
		m.GetOnHeaderMissing().GetValue() == "",
	}.check(wrong)
}

// hasNoValue reports whether a pair is set and lacks a value.
func hasNoValue[P interface {
	comparable
	GetValue() *structpb.Value
}](pair P) bool {
	var none P
	return pair != none && pair.GetValue() == nil
}
