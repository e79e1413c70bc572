package importer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"xdspub/diag"
	"xdspub/render"
	"xdspub/setup/bootstrap"
	"xdspub/source/load"
	"xdspub/xds"
)

// folders maps a type to the folder of its resources in the source tree.
var folders = map[*xds.Type]string{
	xds.Secret: "secrets", xds.ExtensionConfig: "extensions", xds.Endpoints: "endpoints", xds.Cluster: "clusters",
	xds.RouteConfiguration: "routes", xds.ScopedRoutes: "scopes", xds.Listener: "listeners", xds.Runtime: "runtime",
	xds.VirtualHost: "virtual-hosts", xds.LocalityEndpoints: "locality-endpoints",
}

// files returns the files of the source tree, sorted by name.
func (d *draft) files() []File {
	var nodes map[*item]*yaml.Node
	if d.document != nil {
		if nodes = d.document.take(d.items); nodes == nil {
			d.document = nil
			d.warn(d.bootstrap, "static_resources", "all resources are rewritten with sorted keys and without comments: "+
				"static_resources has one resource where a "+
				"list is needed", "write each of listeners, clusters and secrets as a list, and import again")
		}
	}
	used := make(names)
	var files []File
	for _, i := range d.items {
		if i.stays != "" {
			continue
		}
		f, err := d.resourceFile(i, nodes[i])
		if err != nil {
			f := i.Diagnostic(codeChange.Name, "", fmt.Sprintf("no file can hold %s: %s", i.Key, strings.ReplaceAll(err.Error(), "\u00a0", " ")))
			f.Help = "if a type is not one of Envoy, give its --descriptor-set"
			d.found.Add(f)
		}
		folder := folders[i.Type]
		f.Name = path.Join(Tree, folder, used.of(folder, i.Name)+f.Name)
		files = append(files, f)
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return files
}

// resourceFile returns the file of a resource. Its Name is only a suffix.
func (d *draft) resourceFile(i *item, n *yaml.Node) (File, error) {
	if n != nil {
		text, err := bootstrap.EncodeYAML(resourceDocument(n, i))
		if err == nil && i.isIn(d.in, "yaml", text) {
			return File{".yaml", text}, nil
		}
		d.noteRewritten(i, n, text)
	}
	packed, err := i.packed()
	if err != nil {
		return File{}, err
	}
	if text, err := bootstrap.YAML(i.Registry, packed); err == nil && i.isIn(d.in, "yaml", text) {
		return File{".yaml", text}, nil
	}
	text, err := jsonOf(i.Registry, packed)
	if err == nil && !i.isIn(d.in, "json", text) {
		err = errors.New("it can't be written as a file of a source tree")
	}
	return File{".json", text}, err
}

// packed returns the message of an item, in its wrapper if there is one.
func (i *item) packed() (*anypb.Any, error) {
	body := &anypb.Any{}
	err := anypb.MarshalFrom(body, i.Message(), proto.MarshalOptions{Deterministic: true})
	if err != nil || i.Meta == nil {
		return body, err
	}
	wrapper := proto.CloneOf(i.Meta)
	wrapper.Resource = body
	around := &anypb.Any{}
	return around, anypb.MarshalFrom(around, wrapper, proto.MarshalOptions{Deterministic: true})
}

// noteRewritten reports a resource that is written again without its YAML, and the reason. n is the node of the
// resource. text is the YAML that a source tree would not read as this resource; it is empty if there is none.
func (d *draft) noteRewritten(i *item, n *yaml.Node, text []byte) {
	at, why := xds.Path(""), "a source tree does not take its YAML as it is"
	for _, f := range i.readAs(d.in, "yaml", text).Diagnostics {
		if f.Severity == diag.Error && len(text) > 0 {
			at, why = xds.Path(f.Path), f.Message
			break
		}
	}
	var lost comments
	lost.below(n)
	loses := ""
	if len(lost) > 0 {
		loses = " and without its comments"
	}
	d.warn(i.Resource, at, fmt.Sprintf("%s is rewritten with sorted keys%s: %s", i.Key, loses, why), "")
}

// readAs reads a text as the loader reads a file of a source tree.
func (i *item) readAs(in load.Input, format string, text []byte) *load.Result {
	return load.AsWritten(load.Input{Name: in.Name, Format: format, Data: text, Envoy: in.Envoy, Streams: in.Streams})
}

// isIn reports whether a text contains the resource and nothing else.
func (i *item) isIn(in load.Input, format string, text []byte) bool {
	read := i.readAs(in, format, text)
	resources := read.Resources()
	return !read.Diagnostics.HasErrors() && len(resources) == 1 && resources[0].Key == i.Key &&
		proto.Equal(resources[0].Meta, i.Meta) && sameContent(resources[0], i.Resource)
}

func sameContent(a, b *xds.Resource) bool {
	first, errFirst := a.Canonical()
	second, errSecond := b.Canonical()
	return errFirst == nil && errSecond == nil && bytes.Equal(first, second)
}

// bootstrapFile returns the file of the bootstrap. It keeps the format of the configuration, because Envoy reads
// numbers in metadata differently in YAML and in JSON.
func (d *draft) bootstrapFile() (File, error) {
	whole := d.whole()
	if d.document != nil {
		if text, err := bootstrap.EncodeYAML(d.document.node); err == nil && d.isBootstrap("yaml", text, whole) {
			return File{"bootstrap.yaml", text}, nil
		}
		d.warn(d.bootstrap, "", "the comments of the bootstrap are lost: its YAML has a form that can't be kept", "")
	}
	if d.in.Format == "yaml" {
		if text, err := bootstrap.YAML(d.bootstrap.Registry, whole); err == nil && d.isBootstrap("yaml", text, whole) {
			return File{"bootstrap.yaml", text}, nil
		}
	}
	text, err := jsonOf(d.bootstrap.Registry, whole)
	if err == nil && !d.isBootstrap("json", text, whole) {
		err = errors.New("the bootstrap can't be written as a file")
	}
	return File{"bootstrap.json", text}, err
}

// isBootstrap reports whether a text is a bootstrap equal to want.
func (d *draft) isBootstrap(format string, text []byte, want proto.Message) bool {
	got, result := load.ParseBootstrap(load.Input{Name: d.in.Name, Format: format, Data: text, Envoy: d.in.Envoy, Streams: d.in.Streams})
	if got == nil || result.Diagnostics.HasErrors() {
		return false
	}
	if proto.Size(got.GetStaticResources()) == 0 {
		got.StaticResources = nil
	}
	return sameContent(xds.ResourceOf(xds.Key{Type: xds.Bootstrap}, got), xds.ResourceOf(xds.Key{Type: xds.Bootstrap}, want))
}

// below adds the comments of a node and of all nodes below it.
func (c *comments) below(n *yaml.Node) {
	c.of(n)
	for _, child := range n.Content {
		c.below(child)
	}
}

// jsonOf returns a message as JSON. Each build of xdspub writes the same bytes.
func jsonOf(g *xds.Registry, m proto.Message) ([]byte, error) {
	text, err := protojson.MarshalOptions{UseProtoNames: true, Resolver: g}.Marshal(m)
	if err != nil {
		return nil, err
	}
	var indented bytes.Buffer
	err = json.Indent(&indented, text, "", "  ")
	indented.WriteByte('\n')
	return indented.Bytes(), err
}

// names counts the uses of file names. The names are in lower case, because some file systems ignore case.
type names map[string]int

// of returns the name, without a suffix, of the file of a resource.
func (n names) of(folder, resource string) string {
	name := render.Folder(resource)
	if !load.HoldsResources(name+".yaml") || reserved(name) {
		name += "~"
	}
	asked, free := path.Join(folder, strings.ToLower(name)), name
	for n[path.Join(folder, strings.ToLower(free))] > 0 {
		n[asked]++
		free = fmt.Sprintf("%s~%d", name, n[asked])
	}
	n[path.Join(folder, strings.ToLower(free))]++
	return free
}

// reserved reports whether Windows reads a name as that of a device. The suffix of the name does not matter.
func reserved(name string) bool {
	device, _, _ := strings.Cut(strings.ToLower(name), ".")
	if len(device) == 4 && (strings.HasPrefix(device, "com") || strings.HasPrefix(device, "lpt")) {
		return '0' <= device[3] && device[3] <= '9'
	}
	return slices.Contains([]string{"con", "prn", "aux", "nul"}, device)
}
