package xds

import (
	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
)

// Known is the resources that an Envoy has from its own bootstrap. References to
// them resolve; a resource of the same name that comes later is ignored by Envoy.
type Known struct {
	keys map[Key]bool
}

// KnownFrom collects the names in a bootstrap: static clusters, listeners and
// secrets, and runtime layers by RTDS.
func KnownFrom(b *bootstrapv3.Bootstrap) Known {
	k := Known{keys: make(map[Key]bool)}
	for _, c := range b.GetStaticResources().GetClusters() {
		k.keys[Key{Cluster, c.GetName()}] = true
	}
	for _, l := range b.GetStaticResources().GetListeners() {
		k.keys[Key{Listener, l.GetName()}] = true
	}
	for _, s := range b.GetStaticResources().GetSecrets() {
		k.keys[Key{Secret, s.GetName()}] = true
	}
	for _, l := range b.GetLayeredRuntime().GetLayers() {
		if rtds := l.GetRtdsLayer(); rtds != nil {
			k.keys[Key{Runtime, rtds.GetName()}] = true
		}
	}
	return k
}

// Has tells whether the bootstrap holds that resource.
func (k Known) Has(t *Type, name string) bool { return k.keys[Key{t, name}] }
