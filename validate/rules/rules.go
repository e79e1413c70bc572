// Package rules lists all rules. Each family of rules has a folder. In the folder, each rule has a file, and
// its examples in testdata/<code>.txtar; docs/rules describes every rule with its reason and an example.
//
// Rules rely on facts that were tried on Envoy 1.40.0. Package validate/facts holds facts that rules of
// several families share.
package rules

import (
	"cmp"
	"slices"

	"xdspub/validate"
	"xdspub/validate/rules/address"
	"xdspub/validate/rules/bootstrap"
	"xdspub/validate/rules/cluster"
	"xdspub/validate/rules/extension"
	"xdspub/validate/rules/field"
	"xdspub/validate/rules/filter"
	"xdspub/validate/rules/grpc"
	"xdspub/validate/rules/listener"
	"xdspub/validate/rules/matcher"
	"xdspub/validate/rules/reference"
	"xdspub/validate/rules/route"
	"xdspub/validate/rules/syntax"
	"xdspub/validate/rules/telemetry"
	"xdspub/validate/rules/tls"
	"xdspub/validate/rules/variant"
)

// All lists all rules, sorted by code.
var All = slices.SortedFunc(slices.Values(slices.Concat(
	address.Rules,
	bootstrap.Rules,
	cluster.Rules,
	extension.Rules,
	field.Rules,
	filter.Rules,
	grpc.Rules,
	listener.Rules,
	matcher.Rules,
	reference.Rules,
	route.Rules,
	syntax.Rules,
	telemetry.Rules,
	tls.Rules,
	variant.Rules,
)), func(a, b *validate.Rule) int { return cmp.Compare(a.Code, b.Code) })
