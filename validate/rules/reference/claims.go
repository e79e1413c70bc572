package reference

import (
	"xdspub/diag"
	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

// claims is which clusters ask for which endpoint assignments.
type claims struct {
	// meant is, by a name that some cluster asks for in vain, the assignment that
	// it most likely means.
	meant map[string]*xds.Resource
	// orphans are the assignments that no cluster asks for or means.
	orphans []*xds.Resource
}

func claimEndpoints(p *validate.SnapshotPass) claims {
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
	for _, r := range facts.Named(p.Snapshot.Of(xds.Endpoints)) {
		// A static EDS cluster of the bootstrap may ask for it too.
		if !asked[r.Name] && unclaimed[r.Name] == nil && !p.BootstrapFacts.Has(xds.Cluster, r.Name) {
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
