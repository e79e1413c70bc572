package render

import (
	"cmp"
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"

	"xdspub/xds"
)

// watches names the inotify instances that a bound message costs Envoy: one a
// path subscription, and one more for a secret that names certificate files.
// Subscriptions that Envoy shares have one name: equal route configurations and
// secrets are watched once, endpoints once a cluster.
func watches(r *xds.Resource, m proto.Message) []string {
	var names []string
	xds.Walk(m, func(n *xds.Node) {
		switch c := n.Message.(type) {
		case *corev3.ConfigSource:
			file := cmp.Or(c.GetPathConfigSource().GetPath(), c.GetPath())
			switch {
			case file == "":
			case r.Type == xds.Cluster && n.Field() == "envoy.config.cluster.v3.Cluster.EdsClusterConfig.eds_config":
				names = append(names, "cluster "+r.Name)
			default:
				names = append(names, fmt.Sprintf("%s %s", n.Field(), file))
			}
		case *tlsv3.Secret:
			if r.Type == xds.Secret && namesFiles(c) {
				names = append(names, "certificate files of "+r.Name)
			}
		}
	})
	return names
}

func namesFiles(s *tlsv3.Secret) bool {
	found := false
	xds.Walk(s, func(n *xds.Node) {
		if d, ok := n.Message.(*corev3.DataSource); ok && d.GetFilename() != "" {
			found = true
		}
	})
	return found
}

// Watches names the inotify instances of resources that were rendered before.
func Watches(resources []*xds.Resource) []string {
	var names []string
	for _, r := range resources {
		names = append(names, watches(r, r.Message)...)
	}
	return names
}
