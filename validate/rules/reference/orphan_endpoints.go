package reference

import (
	"fmt"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var orphanEndpoints = &validate.Rule{
	Code:     "orphan-endpoints",
	Severity: diag.Warning,
	Unused:   true,
	Doc: `No cluster uses an endpoint assignment.

A cluster of type EDS uses the endpoint assignment whose cluster_name equals the cluster's
eds_cluster_config.service_name, or the cluster's name if that is not set. An assignment that
no cluster uses has no effect; usually one of the two names was changed, or the cluster is not
of type EDS.`,
	Resource: func(p *validate.LookupPass) {
		r := p.Resource
		if r.Type != xds.Endpoints || !p.IsFirst() || !isUnclaimed(p, r.Name) || claims.Lookup(p.Snapshot, r.Name) != "" {
			return
		}
		f := validate.Finding{
			Path:    xds.Path(r.Type.Name),
			Message: fmt.Sprintf("no cluster uses the endpoint assignment %q", r.Name),
			Help:    "write the eds_cluster_config.service_name or the name of an EDS cluster",
		}
		if cluster := p.Snapshot.Lookup(xds.Cluster, r.Name); cluster != nil {
			f.Help = "set the cluster's type to EDS, or remove the assignment"
			f.Related = facts.Related(cluster, "type", "this cluster does not use EDS from this tree")
		}
		p.Report(f)
	},
}
