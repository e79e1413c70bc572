package load

import (
	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/envoy/envoyapi"
	"xdspub/source/decode"
)

// Bootstrap reads an Envoy bootstrap, in the format that Envoy derives from its suffix, as strictly as Envoy
// does. v is the release that reads the file; nil means the latest known release.
//
// The error is not nil if the file can't be read. The findings have the faults of the file, and the Bootstrap
// lacks the unreadable parts. The Bootstrap is nil if nothing could be read.
func Bootstrap(path string, v *envoyapi.Version) (*bootstrapv3.Bootstrap, diag.List, error) {
	b, result, err := BootstrapResources(path, v, nil)
	if err != nil {
		return nil, nil, err
	}
	return b, result.Diagnostics, nil
}

// BootstrapResources reads a bootstrap as Bootstrap does, and returns also its resources: the
// bootstrap itself, of type xds.Bootstrap and without its static resources, then these. A text of the Overlay
// replaces the file.
func BootstrapResources(path string, v *envoyapi.Version, o Overlay) (*bootstrapv3.Bootstrap, *Result, error) {
	s, err := o.source(path, decode.SourceOptions{Envoy: v, Bootstrap: true})
	if err != nil {
		return nil, nil, err
	}
	b, result := bootstrapOf(s)
	return b, result, nil
}

// ParseBootstrap does for an Input what BootstrapResources does for a file.
func ParseBootstrap(in Input) (*bootstrapv3.Bootstrap, *Result) { return bootstrapOf(in.source(true)) }

// bootstrapOf reads a bootstrap, and returns what BootstrapResources does.
func bootstrapOf(s *decode.Source) (*bootstrapv3.Bootstrap, *Result) {
	f, result := parse(s, nil)
	if f.Bootstrap == nil {
		return nil, result
	}
	b := &bootstrapv3.Bootstrap{StaticResources: &bootstrapv3.Bootstrap_StaticResources{}}
	f.Bootstrap.Message().ProtoReflect().Range(func(fd protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		b.ProtoReflect().Set(fd, value)
		return true
	})
	for _, r := range f.Resources {
		switch m := r.Message().(type) {
		case *listenerv3.Listener:
			b.StaticResources.Listeners = append(b.StaticResources.Listeners, m)
		case *clusterv3.Cluster:
			b.StaticResources.Clusters = append(b.StaticResources.Clusters, m)
		case *tlsv3.Secret:
			b.StaticResources.Secrets = append(b.StaticResources.Secrets, m)
		}
	}
	f.Resources = slices.Insert(f.Resources, 0, f.Bootstrap)
	return b, result
}
