package xds

import (
	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// BootstrapFacts are the facts of an Envoy's bootstrap that rules need. A reference to a static resource resolves,
// and Envoy ignores a later resource of the same name. The zero value means that no bootstrap is known.
type BootstrapFacts struct {
	keys       map[Key]bool
	sockets    []BootstrapSocket
	extensions map[protoreflect.FullName]bool
	noAdmin    bool
	local      string
	cdsFile    string
}

// BootstrapSocket is a socket that the Envoy listens on by its bootstrap.
type BootstrapSocket struct {
	Socket
	// Admin means that the socket is that of the admin interface. Otherwise, it is the socket of a static listener.
	Admin bool
	// Listener is the name of the static listener; empty for the admin interface, and for a listener without a name.
	Listener string
}

// BootstrapFactsOf returns the facts of a bootstrap.
func BootstrapFactsOf(b *bootstrapv3.Bootstrap) BootstrapFacts {
	k := BootstrapFacts{
		keys: make(map[Key]bool), extensions: make(map[protoreflect.FullName]bool),
		noAdmin: b.GetAdmin() == nil, local: b.GetClusterManager().GetLocalClusterName(),
		cdsFile: PathOf(b.GetDynamicResources().GetCdsConfig()),
	}
	has := func(t *Type, name string) {
		if name != "" { // no reference can name a resource without a name
			k.keys[Key{t, name}] = true
		}
	}
	if s, ok := SocketOf(b.GetAdmin().GetAddress()); ok {
		k.sockets = append(k.sockets, BootstrapSocket{Socket: s, Admin: true})
	}
	for _, c := range b.GetStaticResources().GetClusters() {
		has(Cluster, c.GetName())
	}
	for _, l := range b.GetStaticResources().GetListeners() {
		has(Listener, l.GetName())
		for _, s := range Sockets(l) {
			k.sockets = append(k.sockets, BootstrapSocket{Socket: s, Listener: l.GetName()})
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

// Has reports whether the bootstrap has a static cluster, listener or secret, or a layer of RTDS, of a name.
func (k BootstrapFacts) Has(t *Type, name string) bool { return k.keys[Key{t, name}] }

// Sockets returns the fixed sockets (SocketOf) of the admin interface and of the static listeners.
func (k BootstrapFacts) Sockets() []BootstrapSocket { return k.sockets }

// HasExtension reports whether the bootstrap has a bootstrap extension of a type.
func (k BootstrapFacts) HasExtension(name protoreflect.FullName) bool { return k.extensions[name] }

// NoAdmin reports whether the bootstrap is known and has no admin interface.
func (k BootstrapFacts) NoAdmin() bool { return k.noAdmin }

// LocalCluster returns the name of the cluster that the Envoy is a member of, or "" if the bootstrap names none.
func (k BootstrapFacts) LocalCluster() string { return k.local }

// ClustersInFile reports whether the bootstrap names a file from which Envoy gets its clusters.
func (k BootstrapFacts) ClustersInFile() bool { return k.cdsFile != "" }

// Given reports whether a bootstrap is known.
func (k BootstrapFacts) Given() bool { return k.keys != nil }
