// Package rules is the list of all rules. Each family of them has a folder, each rule
// there its file and its examples, testdata/<code>.txtar; docs/rules has every rule
// with its reason and an example.
//
// What the rules know about Envoy was tried on Envoy 1.40.0. What rules of several
// families know stands in validate/facts.
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

// All is every rule, sorted by code.
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
