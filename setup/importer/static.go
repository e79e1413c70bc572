package importer

import (
	"context"
	"fmt"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"xdspub/diag"
	"xdspub/xds"
)

// stay finds the static resources that stay in the bootstrap, and reports the reason. others are resources that are
// not among the items, and may refer to items.
func (d *draft) stay(others ...*xds.Resource) {
	byKey := make(map[xds.Key][]*item)
	for _, i := range d.items {
		byKey[i.Key] = append(byKey[i.Key], i)
	}
	var stays []*item // the references of these items are not visited yet
	keep := func(i *item, why string) {
		if i.stays == "" && i.source.text == nil {
			i.stays = why
			stays = append(stays, i)
		}
	}
	needs := func(r *xds.Resource, static bool) {
		by := "the bootstrap"
		if r.Type != xds.Bootstrap {
			by = r.Key.String()
		}
		needed(r, static, func(k xds.Key, at xds.Path) {
			for _, i := range byKey[k] {
				keep(i, fmt.Sprintf("%s names it, in %s", by, at))
			}
		})
	}
	for _, i := range d.items {
		if why := d.ownReason(i); why != "" {
			keep(i, why)
		}
		needs(i.Resource, false)
	}
	for _, r := range others {
		needs(r, false)
	}
	needs(d.bootstrap, true)
	for _, i := range d.items {
		if xds.ServedBy(d.message(), i.Type) && !d.replaced {
			keep(i, fmt.Sprintf("Envoy gets %ss from one source beside static_resources, and dynamic_resources.%s "+
				"names a server", i.Type.Noun, sourceField(i.Type)))
		}
	}
	for len(stays) > 0 {
		i := stays[0]
		stays = stays[1:]
		needs(i.Resource, true)
	}
	for _, i := range d.items {
		if i.stays != "" {
			f := i.Diagnostic(codeStatic.Name, "", fmt.Sprintf("%s stays in static_resources of the bootstrap: %s", i.Key, i.stays))
			f.Severity = diag.Info
			d.found.Add(f)
		}
	}
}

// ownReason returns the reason why a static resource stays in the bootstrap even if nothing refers to it. It
// returns "" without such a reason.
func (d *draft) ownReason(i *item) string {
	listener, _ := i.Message().(*listenerv3.Listener)
	switch {
	case listener.GetApiListener() != nil:
		return "Envoy takes an api_listener from its bootstrap alone"
	case i.Name == "" && i.Type != xds.Listener:
		return "it has no name"
	case d.replaced:
		return ""
	}
	for _, n := range i.Facts().ConfigSources {
		if xds.FromSnapshot(n.Message.(*corev3.ConfigSource)) {
			return fmt.Sprintf("%s asks the ADS server, and in a source tree it would ask the tree", n.Path())
		}
	}
	return ""
}

// needed calls found for each resource that must be static because r refers to it. It passes the path of the
// reference. static means that r is static or is the bootstrap.
func needed(r *xds.Resource, static bool, found func(xds.Key, xds.Path)) {
	_ = r.Walk(context.Background(), func(n *xds.Node) { // Walk fails only if its context ends
		for _, use := range n.Uses() {
			if use.Kind == xds.ClusterName && (static || needsStatic(n, use)) {
				found(xds.Key{Type: xds.Cluster, Name: use.Name}, use.Path())
			}
		}
		sds, ok := n.Message.(*tlsv3.SdsSecretConfig)
		if ok && static && sds.GetSdsConfig().GetConfigSourceSpecifier() == nil {
			found(xds.Key{Type: xds.Secret, Name: sds.GetName()}, n.Path())
		}
	})
}

// needsStatic reports whether Envoy looks up a cluster only among the static clusters. This holds for the cluster
// of a management server, and for references that the catalogue calls static.
func needsStatic(n *xds.Node, use xds.Use) bool {
	if strings.HasPrefix(use.Names, "static ") {
		return true
	}
	server, _ := xds.Enclosing[*corev3.ApiConfigSource](n)
	return server != nil
}

// relativeName returns the file name of a data source if it is a relative path; otherwise nil.
func relativeName(n *xds.Node) *string {
	source, ok := n.Message.(*corev3.DataSource)
	if !ok {
		return nil
	}
	file, ok := source.Specifier.(*corev3.DataSource_Filename)
	if !ok || file.Filename == "" || strings.HasPrefix(file.Filename, "/") {
		return nil
	}
	return &file.Filename
}
