package cluster

import (
	"fmt"
	"slices"

	aggregatev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/aggregate/v3"
	compositev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/composite/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var clusterOfClusters = &validate.Rule{
	Code: "cluster-of-clusters",
	Doc: `An aggregate or composite cluster has a member that can't serve requests.

An aggregate cluster uses the hosts of its members. A member that is itself an aggregate or
composite cluster has no hosts of its own, whether or not the two form a cycle. Envoy
accepts it and never sends it a request (a warning); if no other member is left, every
request gets 503.

A composite cluster passes a request on to its members. If a member leads back to it, Envoy
recurses until it crashes: at the first request, or at the first retry if an earlier member
has answered.`,
	Collect: []protoreflect.FullName{
		"envoy.extensions.clusters.aggregate.v3.ClusterConfig",
		"envoy.extensions.clusters.composite.v3.ClusterConfig",
	},
	ByName: true,
	Snapshot: func(p *validate.SnapshotPass) {
		made := make(map[string]validate.Occurrence)
		var names []string
		for _, m := range p.Collected {
			if m.Resource.Type == xds.Cluster && m.Node.Field() == "envoy.config.cluster.v3.Cluster.CustomClusterType.typed_config" &&
				made[m.Resource.Name].Node == nil {
				made[m.Resource.Name] = m
				names = append(names, m.Resource.Name)
			}
		}
		handsOn := func(name string) (to []string) {
			for _, entry := range compositeIn(made, name).GetClusters() {
				to = append(to, entry.GetName())
			}
			return to
		}
		cycle := facts.Cycles(names, handsOn)
		reported := make(map[string]bool) // the clusters of cycles that were reported
		for _, name := range names {
			switch m := made[name].Node.Message.(type) {
			case *aggregatev3.ClusterConfig:
				checkAggregate(&p.LookupPass, made, made[name], m)
			case *compositev3.ClusterConfig:
				if cycle[name] != 0 && !reported[name] {
					checkComposite(&p.Pass, made, name, facts.CyclePath(name, handsOn, cycle), reported)
				}
			}
		}
	},
}

func checkAggregate(p *validate.LookupPass, made map[string]validate.Occurrence, at validate.Occurrence, config *aggregatev3.ClusterConfig) {
	serves := slices.ContainsFunc(config.GetClusters(), func(name string) bool {
		return made[name].Node == nil && !p.Lacks(xds.Cluster, name)
	})
	for i, name := range config.GetClusters() {
		member := made[name]
		if member.Node == nil {
			continue
		}
		f := validate.Finding{
			Resource: at.Resource,
			Path:     at.Node.Path().Field("clusters").Index(i),
			Message:  fmt.Sprintf("cluster %q has no hosts of its own: requests get 503", name),
			Help:     "list the members of that cluster instead",
		}
		if serves {
			f.Message = fmt.Sprintf("cluster %q has no hosts of its own: it is never used", name)
			f.Warning = true
		}
		if member.Resource != at.Resource {
			f.Related = facts.Related(member.Resource, "cluster_type", "this cluster consists of other clusters")
		}
		p.Report(f)
	}
}

// compositeIn returns the configuration of a composite cluster, or nil for any other cluster. A cycle of composite
// clusters does not go through an aggregate cluster, which picks hosts and does not pass requests on.
func compositeIn(made map[string]validate.Occurrence, name string) *compositev3.ClusterConfig {
	if made[name].Node == nil {
		return nil
	}
	config, _ := made[name].Node.Message.(*compositev3.ClusterConfig)
	return config
}

// checkComposite reports a composite cluster that leads back to itself. way is the path from start back to start.
// checkComposite adds the clusters of way to reported.
func checkComposite(p *validate.Pass, made map[string]validate.Occurrence, start string, way []string, reported map[string]bool) {
	next := start
	if len(way) > 1 {
		next = way[1]
	}
	config := made[start].Node.Message.(*compositev3.ClusterConfig)
	i := slices.IndexFunc(config.GetClusters(), func(e *compositev3.ClusterConfig_ClusterEntry) bool { return e.GetName() == next })
	f := validate.Finding{
		Resource: made[start].Resource,
		Path:     made[start].Node.Path().Field("clusters").Index(i).Field("name"),
		Message:  fmt.Sprintf("cluster %q leads back to composite cluster %q: Envoy crashes", next, start),
		Help:     "remove one of the clusters from the cycle",
	}
	for _, name := range way {
		reported[name] = true
		if name != start {
			f.Related = append(f.Related, facts.Related(made[name].Resource, "cluster_type", "this cluster is part of the cycle")...)
		}
	}
	p.Report(f)
}
