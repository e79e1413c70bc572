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
	"xdspub/validate/facts"
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
var All = complete(slices.SortedFunc(slices.Values(slices.Concat(
	family("address", aboutEnvoy(address.Rules)),
	family("bootstrap", aboutEnvoy(bootstrap.Rules)),
	family("cluster", aboutEnvoy(cluster.Rules)),
	family("extension", aboutEnvoy(extension.Rules)),
	family("field", aboutEnvoy(field.Rules)),
	family("filter", aboutEnvoy(filter.Rules)),
	family("grpc", grpc.Rules),
	family("listener", aboutEnvoy(listener.Rules)),
	family("matcher", aboutEnvoy(matcher.Rules)),
	family("reference", reference.Rules),
	family("route", aboutEnvoy(route.Rules)),
	family("syntax", aboutEnvoy(syntax.Rules)),
	family("telemetry", aboutEnvoy(telemetry.Rules)),
	family("tls", aboutEnvoy(tls.Rules)),
	family("variant", variant.Rules),
)), func(a, b *validate.Rule) int { return cmp.Compare(a.Code, b.Code) }))

// family says in which folder rules stand.
func family(name string, rules []*validate.Rule) []*validate.Rule {
	for _, r := range rules {
		r.Family = name
	}
	return rules
}

// aboutEnvoy says that rules are about Envoy alone.
func aboutEnvoy(rules []*validate.Rule) []*validate.Rule {
	for _, r := range rules {
		if r.Profiles == nil {
			r.Profiles = validate.Envoy
		}
	}
	return rules
}

// complete gives each rule what it does not say itself: what Envoy does not use yet, and which
// resources reach the clients that it is about.
func complete(all []*validate.Rule) []*validate.Rule {
	for _, r := range all {
		r.Idle = facts.IdleTracer
		switch {
		case len(r.Profiles) == 0:
		case slices.Contains(r.Profiles, validate.GRPC):
			r.Reaches = facts.ReachesGRPC
		default:
			r.Reaches = facts.ReachesEnvoy
		}
	}
	return all
}
