// Package importer turns the configuration of an Envoy, or what a control plane sends, into a source tree and a
// bootstrap. Each resource gets a file of the source tree. The bootstrap has the rest: the node, the admin interface,
// statistics, runtime, overload manager, tracing, and the clusters that these need. The command xdspub bootstrap envoy
// --from adds the source of the resources.
//
// A configuration in YAML keeps its comments. A finding reports each difference from the configuration.
//
//	in, err := load.Open("envoy.yaml")
//	…
//	imported := importer.Static(in, importer.Options{})
//	if !imported.Diagnostics.HasErrors() {
//		err = importer.Write("edge", imported.Files, 0o644)
//	}
package importer

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/source/load"
	"xdspub/source/syntax"
	"xdspub/xds"
)

// Options are the options of an import.
type Options struct {
	// Root is the folder in which Envoy starts, and in which relative paths begin. Empty means the current folder.
	Root string
}

// Imported is the result of an import.
type Imported struct {
	// Files are the files of the source tree, below the folder Tree, and the bootstrap if there is one. Files is empty
	// if Diagnostics has errors.
	Files []File
	// Bootstrap is the name of the bootstrap in Files; empty for none.
	Bootstrap string
	// Resources is the number of resources in the source tree. Static is the number of resources that stay in the
	// bootstrap.
	Resources, Static int
	// Diagnostics has the findings of reading, and a finding for each difference from the input.
	Diagnostics diag.List
	// Line returns the source line at a position.
	Line func(diag.Position) (string, bool)
}

// File is a file to write.
type File struct {
	// Name is the path below the directory of the import, with slashes.
	Name string
	Data []byte
}

// Tree is the folder of the source tree, below the directory of the import.
const Tree = "config"

// draft is the state of an import.
type draft struct {
	in      load.Input
	options Options
	// bootstrap is the bootstrap without its static resources; nil for no bootstrap.
	bootstrap *xds.Resource
	items     []*item
	document  *document // nil if the input is not YAML, or if its comments can't be kept
	// replaced means that the source tree replaces the ADS server.
	replaced bool
	// remote is Remote.Kind, such as "control plane"; empty without a Remote.
	remote string
	found  diag.Bounded
}

// item is a resource of the configuration.
type item struct {
	*xds.Resource
	// source is the place of the item in a dump. It is empty for a static resource.
	source part
	// remote means that the item is a resource of a Remote.
	remote bool
	// stays is the reason why the item stays in the bootstrap. It is empty for an item that goes to the source
	// tree.
	stays string
	edits []edit
}

// newDraft returns the draft for an Input.
func newDraft(in load.Input, o Options) *draft {
	return &draft{in: in, options: o, found: diag.NewBounded(syntax.MaxFindings)}
}

// Static imports a bootstrap with static resources, in any format.
func Static(in load.Input, o Options) *Imported {
	b, result := load.ParseBootstrap(in)
	imported := &Imported{Diagnostics: result.Diagnostics, Line: result.Line}
	if b == nil || result.Diagnostics.HasErrors() {
		return imported
	}
	resources := result.Resources()
	d := newDraft(in, o)
	d.bootstrap = resources[0]
	for _, r := range resources[1:] {
		d.items = append(d.items, &item{Resource: r})
	}
	if in.Format == "yaml" {
		d.read()
	}
	d.noteDynamic()
	d.stay()
	d.finish(imported)
	return imported
}

// finish makes the files of the import.
func (d *draft) finish(imported *Imported) {
	d.nameListeners()
	d.resolvePaths()
	files := d.files()
	imported.Resources = len(files)
	if d.bootstrap != nil {
		b, err := d.bootstrapFile()
		if err != nil {
			d.found.Add(d.bootstrap.Diagnostic(codeChange.Name, "", err.Error()))
		}
		files = append(files, b)
		imported.Bootstrap = b.Name
	}
	imported.Diagnostics = append(imported.Diagnostics, d.findings()...).Sort()
	if imported.Diagnostics.HasErrors() {
		return
	}
	imported.Files = files
	imported.Static = len(d.items) - imported.Resources
}

// sourceField returns the field of dynamic_resources with the config source for all resources of a type.
func sourceField(t *xds.Type) string { return strings.ToLower(t.API) + "_config" }

// noteDynamic reports the subscriptions of a bootstrap to clusters and listeners, which are not imported.
func (d *draft) noteDynamic() {
	dynamic := d.message().GetDynamicResources().ProtoReflect()
	for _, t := range xds.Entrypoints {
		field := sourceField(t)
		if !slices.Contains(present(dynamic), protoreflect.Name(field)) {
			continue
		}
		message := fmt.Sprintf("dynamic_resources.%s stays in the bootstrap: the %ss of its file are not imported", field, t.Noun)
		help := fmt.Sprintf("copy the resources of that file into the source tree, and remove %s before xdspub bootstrap envoy --from", field)
		if xds.ServedBy(d.message(), t) {
			message = fmt.Sprintf("dynamic_resources.%s stays in the bootstrap: the %ss of its server are not imported, and "+
				"static %[2]ss stay static", field, t.Noun)
			help = "to have them in the source tree, import the running Envoy: xdspub import http://ADMIN DIR"
		}
		d.warn(d.bootstrap, xds.Path("dynamic_resources").Field(field), message, help)
	}
}

func (d *draft) message() *bootstrapv3.Bootstrap {
	return d.bootstrap.Message().(*bootstrapv3.Bootstrap)
}

func (d *draft) warn(r *xds.Resource, at xds.Path, message, help string) {
	f := r.Diagnostic(codeChange.Name, at, message)
	f.Severity, f.Help = codeChange.Severity, help
	d.found.Add(f)
}

// findings returns the findings so far.
func (d *draft) findings() diag.List {
	return d.found.List(diag.Position{File: d.in.Name}, "in this file")
}

// nameListeners gives a name to listeners without a name. Envoy gives such a listener a random name whenever it
// reads the listener, so each publication would replace the listener.
func (d *draft) nameListeners() {
	names := make(map[string]bool)
	for _, i := range d.items {
		names[i.Name] = names[i.Name] || i.Type == xds.Listener
	}
	n := 0
	for _, i := range d.items {
		if i.Type != xds.Listener || i.Name != "" || i.stays != "" {
			continue
		}
		name := ""
		for name == "" || names[name] {
			name = fmt.Sprintf("listener_%d", n)
			n++
		}
		d.warn(i.Resource, "name", fmt.Sprintf("a listener without a name becomes %q: without one it would be another listener to "+
			"Envoy after each change", name), "")
		m := proto.CloneOf(i.Message().(*listenerv3.Listener))
		m.Name = name
		i.Resource = i.With(m)
		i.Name = name
		i.edits = append(i.edits, edit{"name", name})
	}
}

// resolvePaths makes relative paths of data sources absolute. For Envoy they begin in the folder in which it
// starts; in a source tree they would begin in the folder of the file that has them.
func (d *draft) resolvePaths() {
	root, err := filepath.Abs(d.options.Root)
	for _, i := range d.items {
		if i.stays != "" {
			continue
		}
		changed := i.With(proto.Clone(i.Message()))
		is := changed.Edit(func(n *xds.Node) bool {
			name := relativeName(n)
			if name == nil || err != nil {
				return false
			}
			path := n.Path().Field("filename")
			absolute := filepath.Join(root, filepath.FromSlash(*name))
			d.warn(i.Resource, path, fmt.Sprintf("the path %q becomes %q, as Envoy finds it where it is started: in a source tree "+
				"a relative path begins at the file that names it", *name, absolute), "use --root DIR where Envoy is started in another directory")
			*name = absolute
			i.edits = append(i.edits, edit{path, absolute})
			return true
		})
		if is {
			i.Resource = changed
		}
	}
}

// whole returns the bootstrap with the static resources that stay.
func (d *draft) whole() *bootstrapv3.Bootstrap {
	b := proto.CloneOf(d.message())
	static := &bootstrapv3.Bootstrap_StaticResources{}
	for _, i := range d.items {
		if i.stays == "" {
			continue
		}
		switch m := i.Message().(type) {
		case *listenerv3.Listener:
			static.Listeners = append(static.Listeners, m)
		case *clusterv3.Cluster:
			static.Clusters = append(static.Clusters, m)
		case *tlsv3.Secret:
			static.Secrets = append(static.Secrets, m)
		}
	}
	if proto.Size(static) > 0 {
		b.StaticResources = static
	}
	return b
}
