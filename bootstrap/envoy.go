// Package bootstrap writes the configuration that Envoy is started with: the one
// that makes it subscribe to what xdspub publishes.
//
// Envoy reads it once. It names the cds and lds files of the output directory,
// and an rtds file for each runtime layer; whatever else is subscribed to, those
// resources name themselves. So it changes only with the directory, the format
// or the runtime layers, and each of these needs a new start of Envoy.
//
// Envoy exits 1 when a file that its bootstrap names does not exist: xdspub has
// to publish once before Envoy is started for the first time.
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
	"unicode"
	"unicode/utf8"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"sigs.k8s.io/yaml"

	"xdspub/xds"
)

// EnvoyOptions say what Envoy is to subscribe to, and as whom.
type EnvoyOptions struct {
	// Dir is the output directory of xdspub as Envoy sees it: an absolute path.
	Dir string
	// Format is the one that the files are published in: json, yaml, pb or
	// pb_text; "" means json.
	Format string
	// NodeID and NodeCluster are who this Envoy is. Both are required, because
	// Envoy makes no subscription without them.
	NodeID      string
	NodeCluster string
	// Admin is the address of the admin interface, IP:PORT or unix:PATH; ""
	// means none. Without one, nobody can see whether Envoy took a change.
	Admin string
	// RuntimeLayers are the published ones, later ones over earlier ones. What
	// an operator sets by hand, over the admin interface, is over them all.
	RuntimeLayers []RuntimeLayer
}

// RuntimeLayer is a runtime layer that is published as a file.
type RuntimeLayer struct {
	// Name is that of the layer and of the Runtime resource in its file.
	Name string
	// Folder is where the file lies, under rtds/ in the output directory.
	Folder string
}

// adminLayer is the name of the layer for what an operator sets by hand.
const adminLayer = "admin"

const envoyHeader = `# Envoy bootstrap, made by "xdspub bootstrap envoy".
# Start order: xdspub publishes first, then Envoy starts. Envoy exits 1 when a
# file that is named here does not exist. A change here needs a restart of Envoy.
`

// Envoy returns the bootstrap of an Envoy, as YAML. Equal options give equal bytes.
func Envoy(o EnvoyOptions) ([]byte, error) {
	b, err := envoyMessage(o)
	if err != nil {
		return nil, fmt.Errorf("envoy bootstrap: %w", err)
	}
	if err := xds.Constraints(b); err != nil {
		return nil, fmt.Errorf("envoy bootstrap: %w", err)
	}
	// Through sigs' YAML, because protojson's own bytes differ from build to build.
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(b)
	if err != nil {
		return nil, fmt.Errorf("envoy bootstrap: %w", err)
	}
	body, err := yaml.JSONToYAML(text)
	if err != nil {
		return nil, fmt.Errorf("envoy bootstrap: %w", err)
	}
	// Among these are line breaks that only YAML has, such as U+2028: Envoy would
	// read another value than the one that was given.
	if bad := bytes.IndexFunc(body, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); bad >= 0 {
		r, _ := utf8.DecodeRune(body[bad:])
		return nil, fmt.Errorf("envoy bootstrap: a value has the character %U, which YAML can't hold", r)
	}
	return append([]byte(envoyHeader), body...), nil
}

// envoyMessage reports everything that is wrong with the options at once.
func envoyMessage(o EnvoyOptions) (*bootstrapv3.Bootstrap, error) {
	var faults []error
	note := func(err error) {
		if err != nil {
			faults = append(faults, err)
		}
	}
	if !path.IsAbs(o.Dir) {
		note(fmt.Errorf("the output directory %q is not an absolute path", o.Dir))
	}
	if o.NodeID == "" {
		note(errors.New("the node ID is empty: without one Envoy does not subscribe to any file"))
	}
	if o.NodeCluster == "" {
		note(errors.New("the node cluster is empty: without one Envoy does not subscribe to any file"))
	}
	suffix, err := fileSuffix(o.Format)
	note(err)
	admin, err := adminInterface(o.Admin)
	note(err)
	runtime, err := layeredRuntime(o.Dir, suffix, o.RuntimeLayers)
	note(err)
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return &bootstrapv3.Bootstrap{
		Node:  &corev3.Node{Id: o.NodeID, Cluster: o.NodeCluster},
		Admin: admin,
		DynamicResources: &bootstrapv3.Bootstrap_DynamicResources{
			CdsConfig: subscription(path.Join(o.Dir, "cds"), "cds"+suffix),
			LdsConfig: subscription(path.Join(o.Dir, "lds"), "lds"+suffix),
		},
		LayeredRuntime: runtime,
	}, nil
}

// fileSuffix is by what Envoy knows the format of a file.
func fileSuffix(format string) (string, error) {
	switch format {
	case "":
		return ".json", nil
	case "json", "yaml", "pb", "pb_text":
		return "." + format, nil
	default:
		return "", fmt.Errorf("invalid format %q: use json, yaml, pb or pb_text", format)
	}
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

// layeredRuntime is nil without layers. The admin layer comes with the first one:
// Envoy has only the layers that are named, and refuses /runtime_modify without
// an admin layer; last, because what comes later wins.
func layeredRuntime(dir, suffix string, layers []RuntimeLayer) (*bootstrapv3.LayeredRuntime, error) {
	if len(layers) == 0 {
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
		case l.Folder == "" || strings.Contains(l.Folder, "/"):
			return nil, fmt.Errorf("runtime layer %q: %q is not the name of a folder", l.Name, l.Folder)
		}
		seen[l.Name] = true
		runtime.Layers = append(runtime.Layers, &bootstrapv3.RuntimeLayer{
			Name: l.Name,
			LayerSpecifier: &bootstrapv3.RuntimeLayer_RtdsLayer_{RtdsLayer: &bootstrapv3.RuntimeLayer_RtdsLayer{
				Name:       l.Name,
				RtdsConfig: subscription(path.Join(dir, "rtds", l.Folder), "rtds"+suffix),
			}},
		})
	}
	runtime.Layers = append(runtime.Layers, &bootstrapv3.RuntimeLayer{
		Name:           adminLayer,
		LayerSpecifier: &bootstrapv3.RuntimeLayer_AdminLayer_{AdminLayer: new(bootstrapv3.RuntimeLayer_AdminLayer)},
	})
	return runtime, nil
}

// subscription is to one file, alone in its folder: files that Envoy watches in
// one folder are read in no particular order. The folder is watched, not the
// name in it, so that any rename into the folder makes Envoy read the file
// again; it costs the same one inotify instance. There is no
// initial_fetch_timeout: Envoy reads the file at once, and starts no timer.
func subscription(folder, file string) *corev3.ConfigSource {
	return &corev3.ConfigSource{
		ResourceApiVersion: corev3.ApiVersion_V3,
		ConfigSourceSpecifier: &corev3.ConfigSource_PathConfigSource{PathConfigSource: &corev3.PathConfigSource{
			Path:             path.Join(folder, file),
			WatchedDirectory: &corev3.WatchedDirectory{Path: folder},
		}},
	}
}
