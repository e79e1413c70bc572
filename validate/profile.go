package validate

import (
	"slices"

	"xdspub/xds"
)

// Profile is a kind of client, and the way by which it gets its resources.
type Profile string

// The profiles.
const (
	EnvoyFile Profile = "envoy-file" // an Envoy that reads files
	EnvoyADS  Profile = "envoy-ads"  // an Envoy that asks a management server
	GRPC      Profile = "grpc"       // a gRPC client or server that asks a management server
)

// Profiles are all of them.
var Profiles = []Profile{EnvoyFile, EnvoyADS, GRPC}

// Envoy are those of Envoys.
var Envoy = []Profile{EnvoyFile, EnvoyADS}

// profiles are those for which the Snapshot is judged.
func (o Options) profiles() []Profile {
	if len(o.Profiles) == 0 {
		return []Profile{EnvoyFile}
	}
	return o.Profiles
}

// GRPCAlone reports whether all clients that get the Snapshot are gRPC clients.
func (p *Pass) GRPCAlone() bool {
	return !slices.ContainsFunc(p.profiles, func(q Profile) bool { return q != GRPC })
}

// isFor reports whether the rule is about a client with one of these profiles.
func (r *Rule) isFor(profiles []Profile) bool {
	return len(r.Profiles) == 0 || slices.ContainsFunc(profiles, func(p Profile) bool { return slices.Contains(r.Profiles, p) })
}

// reached reports whether a client that the rule is about gets a resource. Where all clients are
// of its kind they get all.
func (p *Pass) reached(r *xds.Resource) bool {
	others := func(q Profile) bool { return !slices.Contains(p.rule.Profiles, q) }
	return p.rule.Reaches == nil || !slices.ContainsFunc(p.profiles, others) || p.rule.Reaches(p.view, r)
}
