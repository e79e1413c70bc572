package validate

import (
	"fmt"

	"xdspub/diag"
	"xdspub/xds"
)

var orphanEndpoints = &Rule{
	Code:     "orphan-endpoints",
	Severity: diag.Warning,
	Whole:    true,
	Unused:   true,
	Doc: `No cluster asks for an endpoint assignment.

A cluster of type EDS asks for the assignment whose cluster_name is its
eds_cluster_config.service_name, or its own name. An assignment that none asks
for is never used; mostly one of the two names was changed, or the cluster is not
of type EDS.`,
	Snapshot: func(p *SnapshotPass) {
		for _, r := range claimEndpoints(p).orphans {
			f := Finding{
				Resource: r,
				Path:     xds.Path(r.Type.Name),
				Message:  fmt.Sprintf("no cluster asks for endpoint assignment %q", r.Name),
				Help:     "an EDS cluster asks by its eds_cluster_config.service_name, or by its name",
			}
			if cluster := p.Snapshot.Lookup(xds.Cluster, r.Name); cluster != nil {
				f.Help = "give the cluster type EDS, or remove the assignment"
				f.Related = related(cluster, "type", "this cluster does not take its endpoints from here")
			}
			p.Report(f)
		}
	},
}

// claims is which clusters ask for which endpoint assignments.
type claims struct {
	// meant is, by a name that some cluster asks for in vain, the assignment that
	// it most likely means.
	meant map[string]*xds.Resource
	// orphans are the assignments that no cluster asks for or means.
	orphans []*xds.Resource
}

func claimEndpoints(p *SnapshotPass) claims {
	asked := make(map[string]bool)
	var missing []string
	for _, s := range p.Subscribers {
		if s.Target != xds.Endpoints || s.Name == "" || asked[s.Name] {
			continue
		}
		asked[s.Name] = true
		if p.Snapshot.Serves(s.Subscription) && p.Snapshot.Lookup(xds.Endpoints, s.Name) == nil {
			missing = append(missing, s.Name)
		}
	}
	unclaimed := make(map[string]*xds.Resource)
	var names []string
	for _, r := range named(p.Snapshot.Of(xds.Endpoints)) {
		// A static EDS cluster of the bootstrap may ask for it too.
		if !asked[r.Name] && unclaimed[r.Name] == nil && !p.Known.Has(xds.Cluster, r.Name) {
			unclaimed[r.Name] = r
			names = append(names, r.Name)
		}
	}
	c := claims{meant: make(map[string]*xds.Resource)}
	meant := make(map[string]bool)
	words := diag.NewCandidates(names)
	for _, name := range missing {
		near := words.Nearest(name)
		if near == "" && len(missing) == 1 && len(names) == 1 {
			near = names[0]
		}
		if near != "" {
			c.meant[name] = unclaimed[near]
			meant[near] = true
		}
	}
	for _, name := range names {
		if !meant[name] {
			c.orphans = append(c.orphans, unclaimed[name])
		}
	}
	return c
}
