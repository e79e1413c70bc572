package xds

import (
	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Known is the resources that an Envoy has from its own bootstrap. References to
// them resolve; a resource of the same name that comes later is ignored by Envoy.
type Known struct {
	keys       map[Key]bool
	sockets    []KnownSocket
	extensions map[protoreflect.FullName]bool
	noAdmin    bool
	local      string
}

// KnownSocket is a socket that the Envoy listens on by its bootstrap.
type KnownSocket struct {
	Socket
	// Admin tells that it is the admin interface's; else a static listener's.
	Admin bool
	// Listener is the name of the static listener, empty where it has none.
	Listener string
}

// KnownFrom collects what stands in a bootstrap: the names of static clusters,
// listeners and secrets and of runtime layers by RTDS, the sockets of the
// listeners and of the admin interface, the types of bootstrap extensions, and which
// cluster is Envoy's own.
func KnownFrom(b *bootstrapv3.Bootstrap) Known {
	k := Known{
		keys: make(map[Key]bool), extensions: make(map[protoreflect.FullName]bool),
		noAdmin: b.GetAdmin() == nil, local: b.GetClusterManager().GetLocalClusterName(),
	}
	has := func(t *Type, name string) {
		if name != "" { // nothing can ask for it, nor be taken for it
			k.keys[Key{t, name}] = true
		}
	}
	if s, ok := SocketOf(b.GetAdmin().GetAddress()); ok {
		k.sockets = append(k.sockets, KnownSocket{Socket: s, Admin: true})
	}
	for _, c := range b.GetStaticResources().GetClusters() {
		has(Cluster, c.GetName())
	}
	for _, l := range b.GetStaticResources().GetListeners() {
		has(Listener, l.GetName())
		for _, s := range Sockets(l) {
			k.sockets = append(k.sockets, KnownSocket{Socket: s, Listener: l.GetName()})
		}
	}
	for _, s := range b.GetStaticResources().GetSecrets() {
		has(Secret, s.GetName())
	}
	for _, l := range b.GetLayeredRuntime().GetLayers() {
		if rtds := l.GetRtdsLayer(); rtds != nil {
			has(Runtime, rtds.GetName())
		}
	}
	for _, e := range b.GetBootstrapExtensions() {
		k.extensions[e.GetTypedConfig().MessageName()] = true
	}
	return k
}

// Has tells whether the bootstrap holds that resource.
func (k Known) Has(t *Type, name string) bool { return k.keys[Key{t, name}] }

// Sockets are those that the bootstrap's listeners and its admin interface have.
func (k Known) Sockets() []KnownSocket { return k.sockets }

// HasExtension tells whether the bootstrap has an extension of that type.
func (k Known) HasExtension(name protoreflect.FullName) bool { return k.extensions[name] }

// NoAdmin tells whether the bootstrap is known, and has no admin interface.
func (k Known) NoAdmin() bool { return k.noAdmin }

// LocalCluster is the name of the cluster that the Envoy is a member of, empty
// where the bootstrap names none.
func (k Known) LocalCluster() string { return k.local }

// Given tells whether a bootstrap is known at all.
func (k Known) Given() bool { return k.keys != nil }
