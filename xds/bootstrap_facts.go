package xds

import (
	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// BootstrapFacts holds the static resources of an Envoy's bootstrap. References to them
// resolve; Envoy ignores a later resource of the same name.
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
	// Admin means that it is the socket of the admin interface, else of a static listener.
	Admin bool
	// Listener is the name of the static listener, empty if it has no name.
	Listener string
}

// BootstrapFactsOf collects the facts of a bootstrap: the names of static clusters,
// listeners and secrets and of runtime layers by RTDS, the sockets of the listeners and of
// the admin interface, the types of bootstrap extensions, the local cluster, and the file of CDS.
func BootstrapFactsOf(b *bootstrapv3.Bootstrap) BootstrapFacts {
	k := BootstrapFacts{
		keys: make(map[Key]bool), extensions: make(map[protoreflect.FullName]bool),
		noAdmin: b.GetAdmin() == nil, local: b.GetClusterManager().GetLocalClusterName(),
		cdsFile: PathOf(b.GetDynamicResources().GetCdsConfig()),
	}
	has := func(t *Type, name string) {
		if name != "" { // a resource without a name has no references
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

// Has reports whether the bootstrap holds a resource.
func (k BootstrapFacts) Has(t *Type, name string) bool { return k.keys[Key{t, name}] }

// Sockets returns the sockets of the bootstrap's listeners and of its admin interface.
func (k BootstrapFacts) Sockets() []BootstrapSocket { return k.sockets }

// HasExtension reports whether the bootstrap has an extension of that type.
func (k BootstrapFacts) HasExtension(name protoreflect.FullName) bool { return k.extensions[name] }

// NoAdmin reports whether the bootstrap is known and has no admin interface.
func (k BootstrapFacts) NoAdmin() bool { return k.noAdmin }

// LocalCluster returns the name of the cluster that the Envoy is a member of, empty where
// the bootstrap names none.
func (k BootstrapFacts) LocalCluster() string { return k.local }

// ClustersInFile reports whether the bootstrap names a file from which Envoy gets its clusters.
func (k BootstrapFacts) ClustersInFile() bool { return k.cdsFile != "" }

// Given reports whether a bootstrap is known.
func (k BootstrapFacts) Given() bool { return k.keys != nil }
