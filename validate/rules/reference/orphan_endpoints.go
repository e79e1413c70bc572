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
	Whole:    true,
	Unused:   true,
	Doc: `No cluster uses an endpoint assignment.

A cluster of type EDS asks for the assignment whose cluster_name is its
eds_cluster_config.service_name, or its own name. An assignment that none asks
for is never used; mostly one of the two names was changed, or the cluster is not
of type EDS.`,
	Resource: func(p *validate.LookupPass) {
		r := p.Resource
		if r.Type != xds.Endpoints || !p.IsFirst() || !isUnclaimed(p, r.Name) || claims.Lookup(p.Snapshot, r.Name) != "" {
			return
		}
		f := validate.Finding{
			Path:    xds.Path(r.Type.Name),
			Message: fmt.Sprintf("no cluster asks for endpoint assignment %q", r.Name),
			Help:    "an EDS cluster asks by its eds_cluster_config.service_name, or by its name",
		}
		if cluster := p.Snapshot.Lookup(xds.Cluster, r.Name); cluster != nil {
			f.Help = "give the cluster type EDS, or remove the assignment"
			f.Related = facts.Related(cluster, "type", "this cluster does not take its endpoints from here")
		}
		p.Report(f)
	},
}
