package render

import (
	"fmt"
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"

	"xdspub/xds"
)

// watches names the inotify instances that a bound message costs Envoy: one for each path subscription without
// polling, a second for a secret that names files, and one for a direct response with a watched file.
//
// Parts that Envoy shares have one name. Parts that exist side by side during a change have two names, so that
// the union of the old names and the new names is Envoy's need during the change. All numbers were counted on
// the real Envoy (docs/evidence/envoy-behaviour.md).
func watches(r *xds.Resource) []string {
	var names []string
	f := r.Facts()
	for _, n := range f.ConfigSources {
		c := n.Message.(*corev3.ConfigSource)
		switch file := xds.PathOf(c); {
		case file == "", c.GetPathConfigSource().GetPollInterval() != nil:
		case n.Field() == "envoy.config.cluster.v3.Cluster.EdsClusterConfig.eds_config":
			names = append(names, ofCluster(r))
		default:
			names = append(names, fmt.Sprintf("%s %s %s", place(n), file, content(c)))
		}
	}
	for _, n := range f.FileData {
		if r.Type != xds.Secret && n.Message.(*corev3.DataSource).GetWatchedDirectory() != nil {
			names = append(names, fmt.Sprintf("%s %s %s %s", r.Type, r.Name, n.Path(), content(n.Message)))
		}
	}
	if r.Type == xds.Secret && slices.ContainsFunc(f.FileData, namesFile) {
		names = append(names, "files of secret "+r.Name)
	}
	return names
}

// ofCluster names the subscription of an EDS cluster. Clusters never share a subscription. Envoy replaces a
// changed cluster at once, unless the new cluster has to get warm. Then the old cluster runs until the new
// cluster is warm, and both hold an instance.
func ofCluster(r *xds.Resource) string {
	name := "cluster " + r.Name
	if getsWarm(r) {
		name += " " + content(r.Message())
	}
	return name
}

// getsWarm reports whether a cluster waits for somebody else before it takes over:
// for its first health checks, or for a subscription over the network.
func getsWarm(r *xds.Resource) bool {
	c, ok := r.Message().(*clusterv3.Cluster)
	return ok && (len(c.GetHealthChecks()) > 0 || slices.ContainsFunc(r.Facts().ConfigSources, func(n *xds.Node) bool {
		return xds.PathOf(n.Message.(*corev3.ConfigSource)) == ""
	}))
}

// place names the field that subscribes. Where an extension is asked for it is
// the list of filters that counts: upstream and downstream filters share no
// subscription.
func place(n *xds.Node) string {
	if _, filter := xds.Enclosing[*corev3.ExtensionConfigSource](n); filter != nil {
		n = filter.Parent
	}
	return string(n.Field())
}

// content tells messages apart: Envoy shares what is subscribed to in exactly the
// same way.
func content(m proto.Message) string {
	canonical, err := xds.Marshal(m)
	if err != nil {
		return "" // a message that can't be written is reported where it is encoded
	}
	return xds.Version([][]byte{canonical})
}

func namesFile(n *xds.Node) bool { return n.Message.(*corev3.DataSource).GetFilename() != "" }

// Watches returns the path subscriptions that Envoy has by resources that were rendered before,
// as Output.Watches does.
func Watches(resources []*xds.Resource) []string {
	var names []string
	for _, r := range resources {
		names = append(names, watches(r)...)
	}
	return names
}
