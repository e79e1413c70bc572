package validate

import (
	"slices"

	"xdspub/xds"
)

// Profile is a kind of client, and the way in which such a client gets its resources.
type Profile string

// The profiles.
const (
	EnvoyFile Profile = "envoy-file" // an Envoy that reads files
	EnvoyADS  Profile = "envoy-ads"  // an Envoy that asks a management server
	GRPC      Profile = "grpc"       // a gRPC client or server that asks a management server
)

// Profiles lists all profiles.
var Profiles = []Profile{EnvoyFile, EnvoyADS, GRPC}

// Envoy lists the profiles of Envoys.
var Envoy = []Profile{EnvoyFile, EnvoyADS}

// profiles returns the profiles of the Snapshot's clients.
func (o Options) profiles() []Profile {
	if len(o.Profiles) == 0 {
		return []Profile{EnvoyFile}
	}
	return o.Profiles
}

// GRPCAlone reports whether every client of the Snapshot is a gRPC client.
func (p *Pass) GRPCAlone() bool {
	return !slices.ContainsFunc(p.profiles, func(q Profile) bool { return q != GRPC })
}

// isFor reports whether the rule applies to a client with one of the profiles.
func (r *Rule) isFor(profiles []Profile) bool {
	return len(r.Profiles) == 0 || slices.ContainsFunc(profiles, func(p Profile) bool { return slices.Contains(r.Profiles, p) })
}

// reached reports whether a client with one of the rule's profiles gets a resource. If every client has one of
// these profiles, it returns true.
func (p *Pass) reached(r *xds.Resource) bool {
	others := func(q Profile) bool { return !slices.Contains(p.rule.Profiles, q) }
	return p.rule.Reaches == nil || !slices.ContainsFunc(p.profiles, others) || p.rule.Reaches(p.view, r)
}
