// Package bootstrap writes the bootstrap of an Envoy that subscribes to the resources that xdspub publishes or serves.
//
// Envoy reads its bootstrap once, when it starts. With the transport File, the bootstrap names the cds and lds files
// of the output directory, and an rtds file for each runtime layer; the resources in these files name all other files.
// With any other transport, the bootstrap names the server. So Envoy needs a new bootstrap, and a restart, only after
// a change of the directory, the format, the server or the runtime layers.
//
// Envoy exits with status 1 if a file that its bootstrap names does not exist. So xdspub has to publish once before
// Envoy starts for the first time. A server may start after Envoy.
//
//	yaml, err := bootstrap.Envoy(bootstrap.EnvoyOptions{
//		Dir:         "/var/lib/xdspub",
//		NodeID:      "edge-1",
//		NodeCluster: "edge",
//		Admin:       "127.0.0.1:9901",
//	})
package bootstrap

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"path"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"sigs.k8s.io/yaml"

	"xdspub/xds"
)

// EnvoyOptions are the options of the bootstrap of an Envoy.
type EnvoyOptions struct {
	// Transport is the way in which the Envoy gets resources. "" means File.
	Transport Transport
	// Dir is the output directory of xdspub as Envoy sees it: an absolute path. Dir, Format and PollInterval apply
	// only to File.
	Dir string
	// Unpublished lists Cluster or Listener if the output directory has no resource of the type. If a Base gets
	// resources of such a type from a server, Merge keeps this server. Unpublished applies only to File.
	Unpublished []*xds.Type
	// Format is the format of the published files: json, yaml, pb or pb_text. "" means json.
	Format string
	// PollInterval is the time after which Envoy reads the files again. It is for file systems that report no
	// events. 0 means that Envoy waits for events.
	PollInterval time.Duration
	// Server is the server of resources for the transports other than File.
	Server Server
	// NodeID and NodeCluster identify this Envoy. Both are required, because Envoy subscribes to nothing without
	// them.
	NodeID      string
	NodeCluster string
	// Region, Zone and SubZone are the locality of this Envoy.
	Region, Zone, SubZone string
	// Metadata is further information about this Envoy, for the server.
	Metadata map[string]string
	// Admin is the address of the admin interface, IP:PORT or unix:PATH; "" means no admin interface. Without an
	// admin interface, nobody can see whether Envoy accepted a change.
	Admin string
	// LimitAdmin means that the admin interface answers only the paths that xdspub and probes ask for. Envoys
	// before 1.37 refuse a bootstrap with this limit.
	LimitAdmin bool
	// RuntimeLayers are the published runtime layers. Later layers win. Values that an operator sets in the admin
	// interface win over all layers.
	RuntimeLayers []RuntimeLayer
	// StatsTags are tags of all statistics of this Envoy.
	StatsTags map[string]string
	// MaxConnections limits the number of connections of clients. MaxHeap limits the memory of Envoy, in bytes. 0
	// means no limit.
	MaxConnections, MaxHeap uint64
}

// RuntimeLayer is a published runtime layer.
type RuntimeLayer struct {
	// Name is the name of the layer and of its Runtime resource.
	Name string
	// Folder is the name of the folder, under rtds/ in the output directory, with the file of the layer. It applies
	// only to File.
	Folder string
}

// adminLayer is the name of the layer with the values that an operator sets in the admin interface.
const adminLayer = "admin"

const (
	envoyHeader = `# Envoy bootstrap, made by "xdspub bootstrap envoy".
`
	fileHeader = `# Start order: xdspub publishes first, then Envoy starts. Envoy exits 1 when a
# file that is named here does not exist. A change here needs a restart of Envoy.
`
	streamHeader = `# The cluster leads to xdspub serve. Envoy may start before it, and connects again
# by itself. A change here needs a restart of Envoy.
`
)

// Envoy returns the bootstrap of an Envoy, as YAML. Equal options give equal bytes.
func Envoy(o EnvoyOptions) ([]byte, error) {
	b, err := envoyMessage(o)
	if err != nil {
		return nil, fmt.Errorf("envoy bootstrap: %w", err)
	}
	if err := xds.Constraints(b); err != nil {
		return nil, fmt.Errorf("envoy bootstrap: %w", err)
	}
	body, err := YAML(nil, b)
	if err != nil {
		return nil, fmt.Errorf("envoy bootstrap: %w", err)
	}
	header := envoyHeader + streamHeader
	if o.transport() == File {
		header = envoyHeader + fileHeader
	}
	return append([]byte(header), body...), nil
}

// YAML returns a message as YAML. g has the types of the Anys in the message. YAML converts JSON by
// sigs.k8s.io/yaml, because the bytes of protojson differ from build to build. A value with a character that YAML
// can't hold is an error.
func YAML(g *xds.Registry, m proto.Message) ([]byte, error) {
	text, err := protojson.MarshalOptions{UseProtoNames: true, Resolver: g}.Marshal(m)
	if err != nil {
		return nil, err
	}
	body, err := yaml.JSONToYAML(text)
	if err != nil {
		return nil, err
	}
	// YAML also has line breaks that JSON does not have, such as U+2028. With such a character, Envoy would read
	// another value.
	if bad := bytes.IndexFunc(body, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); bad >= 0 {
		r, _ := utf8.DecodeRune(body[bad:])
		return nil, fmt.Errorf("a value has the character %U, which YAML can't hold", r)
	}
	return body, nil
}

// envoyMessage returns the bootstrap for the options. Its error has all faults of the options.
func envoyMessage(o EnvoyOptions) (*bootstrapv3.Bootstrap, error) {
	var faults []error
	note := func(err error) {
		if err != nil {
			faults = append(faults, err)
		}
	}
	if o.NodeID == "" {
		note(errors.New("the node ID is empty: without one Envoy subscribes to nothing"))
	}
	if o.NodeCluster == "" {
		note(errors.New("the node cluster is empty: without one Envoy subscribes to nothing"))
	}
	sources, err := o.sources()
	note(err)
	admin, err := adminInterface(o.Admin)
	note(err)
	runtime, err := layeredRuntime(sources, o.RuntimeLayers)
	note(err)
	overload, err := overloadManager(o.MaxConnections, o.MaxHeap)
	note(err)
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	b := &bootstrapv3.Bootstrap{
		Node:             o.node(),
		Admin:            admin,
		DynamicResources: sources.dynamic(),
		LayeredRuntime:   runtime,
		StatsConfig:      statsConfig(o.StatsTags),
		OverloadManager:  overload,
	}
	if o.transport() != File {
		cluster, err := o.Server.cluster(o.Transport)
		if err != nil {
			return nil, err
		}
		b.StaticResources = &bootstrapv3.Bootstrap_StaticResources{Clusters: []*clusterv3.Cluster{cluster}}
	}
	if b.Admin != nil {
		o.limitAdmin(b.Admin)
	}
	return b, nil
}

// node returns the identity of this Envoy.
func (o EnvoyOptions) node() *corev3.Node {
	n := &corev3.Node{Id: o.NodeID, Cluster: o.NodeCluster}
	if locality := (&corev3.Locality{Region: o.Region, Zone: o.Zone, SubZone: o.SubZone}); proto.Size(locality) > 0 {
		n.Locality = locality
	}
	for key, value := range o.Metadata {
		if n.Metadata == nil {
			n.Metadata = &structpb.Struct{Fields: make(map[string]*structpb.Value)}
		}
		n.Metadata.Fields[key] = structpb.NewStringValue(value)
	}
	return n
}

// adminInterface returns the admin interface for an address, IP:PORT or unix:PATH. A path must be absolute: a
// relative path would begin at the directory in which Envoy happens to start. Envoy does not resolve host names
// here.
func adminInterface(address string) (*bootstrapv3.Admin, error) {
	if address == "" {
		return nil, nil
	}
	if socket, ok := strings.CutPrefix(address, "unix:"); ok {
		if !path.IsAbs(socket) {
			return nil, fmt.Errorf("invalid admin address %q: %q is not an absolute path", address, socket)
		}
		return &bootstrapv3.Admin{Address: &corev3.Address{Address: &corev3.Address_Pipe{
			Pipe: &corev3.Pipe{Path: socket},
		}}}, nil
	}
	ip, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, fmt.Errorf("invalid admin address %q: write IP:PORT, such as 127.0.0.1:9901 or [::1]:9901, or unix:PATH", address)
	}
	return &bootstrapv3.Admin{Address: &corev3.Address{Address: &corev3.Address_SocketAddress{
		SocketAddress: &corev3.SocketAddress{
			Address:       ip.Addr().String(),
			PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(ip.Port())},
		},
	}}}, nil
}

// adminPaths match the paths of Envoy's admin interface that package envoy asks for, and /ready for probes. Envoy
// matches the path with its query.
var adminPaths = []*matcherv3.StringMatcher{
	{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: "/ready"}},
	{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: "/server_info"}},
	{MatchPattern: &matcherv3.StringMatcher_Prefix{Prefix: "/stats?"}},
	{MatchPattern: &matcherv3.StringMatcher_Prefix{Prefix: "/config_dump?mask="}},
}

// limitAdmin sets the paths that an admin interface answers, and exempts its connections from MaxConnections.
func (o EnvoyOptions) limitAdmin(admin *bootstrapv3.Admin) {
	// An operator can connect even if clients use all connections.
	admin.IgnoreGlobalConnLimit = o.MaxConnections > 0
	if o.LimitAdmin {
		admin.AllowPaths = adminPaths
	}
}

// layeredRuntime returns the runtime of the bootstrap, or nil without layers. Its last layer is the admin layer,
// because later layers win. Without an admin layer, Envoy refuses /runtime_modify.
func layeredRuntime(from sources, layers []RuntimeLayer) (*bootstrapv3.LayeredRuntime, error) {
	if len(layers) == 0 || from == nil {
		return nil, nil
	}
	seen := map[string]bool{adminLayer: true}
	runtime := new(bootstrapv3.LayeredRuntime)
	for _, l := range layers {
		switch {
		case l.Name == "":
			return nil, fmt.Errorf("runtime layer in folder %q has no name", l.Folder)
		case l.Name == adminLayer:
			return nil, fmt.Errorf("runtime layer %q: the bootstrap has a layer of this name already, for /runtime_modify", l.Name)
		case seen[l.Name]:
			return nil, fmt.Errorf("runtime layer %q is given twice", l.Name)
		}
		seen[l.Name] = true
		source, err := from.layer(l)
		if err != nil {
			return nil, err
		}
		runtime.Layers = append(runtime.Layers, &bootstrapv3.RuntimeLayer{
			Name: l.Name,
			LayerSpecifier: &bootstrapv3.RuntimeLayer_RtdsLayer_{RtdsLayer: &bootstrapv3.RuntimeLayer_RtdsLayer{
				Name: l.Name, RtdsConfig: source,
			}},
		})
	}
	runtime.Layers = append(runtime.Layers, &bootstrapv3.RuntimeLayer{
		Name:           adminLayer,
		LayerSpecifier: &bootstrapv3.RuntimeLayer_AdminLayer_{AdminLayer: new(bootstrapv3.RuntimeLayer_AdminLayer)},
	})
	return runtime, nil
}
