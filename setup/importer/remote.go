package importer

import (
	"fmt"
	"slices"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"

	"xdspub/diag"
	"xdspub/source/load"
	"xdspub/xds"
)

// Remote has the resources of a load.Remote, such as a control plane.
type Remote struct {
	// Name is the name of the load.Remote, and Kind is its load.Remote.Kind.
	Name, Kind string
	// Read has the resources.
	Read *load.Result
	// Bootstrap is the bootstrap of an Envoy that gets the resources. A Bootstrap without a Format means
	// no bootstrap. Bootstrap.Envoy and Bootstrap.Streams also say how the files of the source tree are read.
	Bootstrap load.Input
}

// Import imports the resources, and the bootstrap if there is one. The static resources stay in the bootstrap.
func (r Remote) Import(o Options) *Imported {
	d := newDraft(r.Bootstrap, o)
	d.remote = r.Kind
	imported := &Imported{Diagnostics: r.Read.Diagnostics, Line: r.Read.Line}
	if r.Bootstrap.Format == "" {
		d.in.Name = r.Name
	} else {
		d.readBootstrap(imported)
	}
	if imported.Diagnostics.HasErrors() {
		return imported
	}
	for _, is := range r.Read.Resources() {
		d.items = append(d.items, &item{Resource: is, remote: true})
	}
	d.noteAbsent(r.Read.Snapshot())
	d.noteServers()
	if d.bootstrap != nil {
		d.dropLayers(r.Read.Snapshot())
		d.cleanBootstrap()
	}
	d.finish(imported)
	return imported
}

// readBootstrap reads the bootstrap of the draft, and adds its findings to the import.
func (d *draft) readBootstrap(imported *Imported) {
	_, result := load.ParseBootstrap(d.in)
	ofRemote := imported.Line
	imported.Line = func(p diag.Position) (string, bool) {
		if line, ok := result.Line(p); ok {
			return line, true
		}
		return ofRemote(p)
	}
	imported.Diagnostics = append(slices.Clone(imported.Diagnostics), result.Diagnostics...)
	resources := result.Resources()
	if result.Diagnostics.HasErrors() || len(resources) == 0 {
		return
	}
	d.bootstrap = resources[0]
	for _, static := range resources[1:] {
		d.items = append(d.items, &item{Resource: static, stays: "it is in the bootstrap"})
	}
	if d.in.Format == "yaml" {
		d.read()
	}
}

// keys returns the keys of all resources, with true for a resource of the Remote. A resource that clients ask for
// InGroups has the key of its group.
func (d *draft) keys() map[xds.Key]bool {
	has := make(map[xds.Key]bool, len(d.items))
	for _, i := range d.items {
		k := i.Key
		if k.Type.Asked == xds.InGroups {
			k.Name = k.Type.Group(k.Name)
		}
		has[k] = has[k] || i.remote
	}
	return has
}

// noteAbsent reports the subscriptions to resources that the Remote does not have, and the subscriptions of static
// resources to an ADS server.
func (d *draft) noteAbsent(s *xds.Snapshot) {
	has := d.keys()
	for _, i := range d.items {
		for _, sub := range i.Facts().Subscriptions {
			switch {
			case !i.remote && xds.FromSnapshot(sub.Source):
				d.noteAsksServer(i, sub)
			case i.remote && sub.Name != "" && s.Serves(sub):
				d.wants(i, xds.Key{Type: sub.Target, Name: sub.Name}, sub.NamePath, has)
			}
		}
		if scope, ok := i.Message().(*routev3.ScopedRouteConfiguration); ok && scope.GetRouteConfigurationName() != "" {
			d.wants(i, xds.Key{Type: xds.RouteConfiguration, Name: scope.GetRouteConfigurationName()}, "route_configuration_name", has)
		}
	}
}

// wants reports that an item subscribes to a resource, unless the Remote has the resource. at is the path of the name.
func (d *draft) wants(i *item, k xds.Key, at xds.Path, has map[xds.Key]bool) {
	if has[k] {
		return
	}
	what := k.String()
	if k.Type.Asked == xds.InGroups {
		what = fmt.Sprintf("%s of %q", k.Type.Noun, k.Name)
	}
	d.warn(i.Resource, at, fmt.Sprintf("the %s has no %s: %s asks for it", d.remote, what, i.Key),
		fmt.Sprintf("write it into the source tree, or import again once the %s has it", d.remote))
}

// noteServers reports the config sources of xds.AskedByEnvoy: import does not ask for their resources.
func (d *draft) noteServers() {
	for _, i := range d.items {
		if !i.remote {
			continue
		}
		for _, n := range xds.AskedByEnvoy(i.Resource) {
			source := n.Message.(*corev3.ConfigSource)
			if xds.FromSnapshot(source) {
				d.warn(i.Resource, n.Path(), fmt.Sprintf("%s makes Envoy ask for names on demand: their resources are not imported", i.Key),
					"write these resources into the source tree")
			} else {
				d.warn(i.Resource, n.Path(), fmt.Sprintf("%s still asks %s, whose resources are not imported", i.Key, sourceOf(source)),
					"write these resources into the source tree, and ads: {} here")
			}
		}
	}
}

// dropLayers removes runtime layers from the bootstrap: the layers whose values are in the source tree, because xdspub
// bootstrap envoy adds these layers again, and the layers for which the Remote has no values.
func (d *draft) dropLayers(s *xds.Snapshot) {
	b := proto.CloneOf(d.message())
	var kept []*bootstrapv3.RuntimeLayer
	var gone []int
	for n, layer := range b.GetLayeredRuntime().GetLayers() {
		why := d.layerGoes(layer.GetRtdsLayer(), s)
		if why == "" {
			kept = append(kept, layer)
			continue
		}
		gone = append(gone, n)
		d.warn(d.bootstrap, xds.Path("layered_runtime.layers").Index(n), fmt.Sprintf("runtime layer %q is left out of the bootstrap: %s",
			diag.Clip(layer.GetName(), diag.MaxWord), why), "")
	}
	if len(gone) == 0 {
		return
	}
	if b.LayeredRuntime.Layers = kept; len(kept) == 0 {
		b.LayeredRuntime = nil
	}
	d.document.dropElements("layered_runtime", "layers", gone)
	d.bootstrap = d.bootstrap.With(b)
}

// layerGoes returns why dropLayers removes a runtime layer; empty for a layer that stays.
func (d *draft) layerGoes(rtds *bootstrapv3.RuntimeLayer_RtdsLayer, s *xds.Snapshot) string {
	switch source := rtds.GetRtdsConfig(); {
	case xds.FromServer(source) && s.Lookup(xds.Runtime, rtds.GetName()) != nil:
		return "the source tree has its values, and xdspub bootstrap envoy adds the layer behind the other layers"
	case xds.FromSnapshot(source):
		return fmt.Sprintf("the %s has no values for it", d.remote)
	}
	return ""
}
