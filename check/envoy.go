package check

import "xdspub/envoy/envoyapi"

// EnvoyReleases returns the names of the releases of Envoy that EnvoyOf accepts. The oldest is the first.
func EnvoyReleases() []string { return envoyapi.Releases() }

// EnvoyOf returns the value of Rules.Envoy that fits Envoys of all given releases. It is nil if releases is empty.
// If a name is not the name of a release, ok is false and unknown is the name.
func EnvoyOf(releases []string) (of *envoyapi.Version, unknown string, ok bool) {
	var fleet []*envoyapi.Version
	for _, name := range releases {
		v := envoyapi.Named(name)
		if v == nil {
			return nil, name, false
		}
		fleet = append(fleet, v)
	}
	if fleet == nil {
		return nil, "", true
	}
	return envoyapi.Fleet(fleet), "", true
}
