// Package bootstrap writes the configuration that Envoy is started with: the one
// that makes it subscribe to what xdspub publishes or serves.
//
// Envoy reads it once. By files it names the cds and lds files of the output directory, and an
// rtds file for each runtime layer; whatever else is subscribed to, those resources name
// themselves. By the other transports it names the server instead. So it changes only with the
// directory, the format, the server or the runtime layers, and each of these needs a new start of
// Envoy.
//
// Envoy exits 1 when a file that its bootstrap names does not exist: xdspub has
// to publish once before Envoy is started for the first time. A server may come later.
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

// EnvoyOptions say what Envoy is to subscribe to, and as whom.
type EnvoyOptions struct {
	// Transport is how resources come; "" means File.
	Transport Transport
	// Dir is the output directory of xdspub as Envoy sees it: an absolute path. Dir, Format and PollInterval
	// are for File alone.
	Dir string
	// Unpublished lists Cluster or Listener if the output directory has no resource of the type. Merge
	// then keeps the server from which a Base gets resources of the type. It is for File alone.
	Unpublished []*xds.Type
	// Format is the one that the files are published in: json, yaml, pb or
	// pb_text; "" means json.
	Format string
	// PollInterval has Envoy read the files again and again, as file systems need that report no
	// events; 0 has it wait for events.
	PollInterval time.Duration
	// Server sends the resources by the other transports.
	Server Server
	// NodeID and NodeCluster identify this Envoy. Both are required, because Envoy makes no subscription
	// without them.
	NodeID      string
	NodeCluster string
	// Region, Zone and SubZone are the locality of this Envoy.
	Region, Zone, SubZone string
	// Metadata is further information on this Envoy for a server.
	Metadata map[string]string
	// Admin is the address of the admin interface, IP:PORT or unix:PATH; "" means none. Without an admin
	// interface, nobody can see whether Envoy accepted a change.
	Admin string
	// LimitAdmin has the admin interface answer only the paths that xdspub, its status and probes ask for.
	// Envoys before 1.37 refuse such a bootstrap.
	LimitAdmin bool
	// RuntimeLayers are the published layers; later layers win. Values that an operator sets over the admin
	// interface win over every layer.
	RuntimeLayers []RuntimeLayer
	// StatsTags are tags of all statistics of this Envoy.
	StatsTags map[string]string
	// MaxConnections limits the connections of clients at a time, MaxHeap the bytes of memory that Envoy may
	// use. 0 means no limit.
	MaxConnections, MaxHeap uint64
}

// RuntimeLayer is a published runtime layer.
type RuntimeLayer struct {
	// Name is that of the layer and of its Runtime resource.
	Name string
	// Folder is where the file lies, under rtds/ in the output directory. It is for File alone.
	Folder string
}

// adminLayer is the name of the layer for what an operator sets by hand.
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

// YAML returns a message as YAML; g has the types of its Anys. YAML converts through sigs.k8s.io/yaml, because
// protojson's own bytes differ from build to build. A value with a character that YAML can't hold is an error.
func YAML(g *xds.Registry, m proto.Message) ([]byte, error) {
	text, err := protojson.MarshalOptions{UseProtoNames: true, Resolver: g}.Marshal(m)
	if err != nil {
		return nil, err
	}
	body, err := yaml.JSONToYAML(text)
	if err != nil {
		return nil, err
	}
	// Such characters include line breaks that only YAML knows, such as U+2028: Envoy would read another
	// value.
	if bad := bytes.IndexFunc(body, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); bad >= 0 {
		r, _ := utf8.DecodeRune(body[bad:])
		return nil, fmt.Errorf("a value has the character %U, which YAML can't hold", r)
	}
	return body, nil
}

// envoyMessage reports everything that is wrong with the options at once.
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

// node returns who this Envoy is.
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

// adminInterface reads IP:PORT or unix:PATH. Envoy looks up no host names for it,
// and takes a relative path from whatever directory it happens to start in.
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

// adminPaths are the paths of Envoy's admin interface that package envoy asks for, and /ready, which probes
// ask for too. Envoy compares them with the path and its query.
var adminPaths = []*matcherv3.StringMatcher{
	{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: "/ready"}},
	{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: "/server_info"}},
	{MatchPattern: &matcherv3.StringMatcher_Prefix{Prefix: "/stats?"}},
	{MatchPattern: &matcherv3.StringMatcher_Prefix{Prefix: "/config_dump?mask="}},
}

// limitAdmin sets the limits of an admin interface: the paths that it answers, and none for its connections.
func (o EnvoyOptions) limitAdmin(admin *bootstrapv3.Admin) {
	// An operator gets in even if clients take all connections.
	admin.IgnoreGlobalConnLimit = o.MaxConnections > 0
	if o.LimitAdmin {
		admin.AllowPaths = adminPaths
	}
}

// layeredRuntime is nil without layers. The admin layer comes with the first one:
// Envoy has only the layers that are named, and refuses /runtime_modify without
// an admin layer; last, because what comes later wins.
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
