package watch

import (
	"fmt"
	"slices"

	"xdspub/diag"
	"xdspub/validate/transition"
	"xdspub/xds"
	"xdspub/xds/variants"
)

// judged is a snapshot with the verdict of the transition rules.
type judged struct {
	snapshot *xds.Snapshot // nil for none
	// still means that the rules find nothing in the transition from the snapshot to itself.
	still bool
	// guards means that only the guards judged the transition.
	guards bool
}

// transitions runs the transition rules on the change from the served snapshot to s. The other rules than guards
// run only for Envoys, and only if no files record what the Envoys run. An edit that can't affect the rules costs
// nothing.
func (c *Controller) transitions(s *xds.Snapshot, guard *transition.Guard) (diag.List, error) {
	rules := c.options.Source.Rules
	o := transition.Options{
		Disable: rules.Disable, Guard: guard, Source: c.options.Source.Path, OnlyGuards: !rules.ForEnvoys() || c.writes() && c.SnapshotID() != "",
	}
	if o.OnlyGuards && guard == nil {
		c.judged = judged{}
		return nil, nil
	}
	changes, known := s.ChangesSince(c.served)
	keeps := known && transition.Keeps(changes, s, guard)
	if keeps && c.judged.still && c.judged.snapshot == c.served && (o.OnlyGuards || !c.judged.guards) {
		c.judged.snapshot = s
		return nil, nil
	}
	of := c.options.Server.Transitions(s)
	if of == nil && guard != nil {
		var err error
		if of, err = c.sinceLast(s); err != nil {
			return nil, err
		}
		o.OnlyGuards = true
	}
	var found diag.Owned
	for _, t := range of {
		own := o
		own.OnlyGuards = o.OnlyGuards || t.Clients != nil
		list, err := transition.Transitions(transition.Served{Snapshot: t.From, Current: t.Current}, t.To, own)
		if err != nil {
			c.judged = judged{}
			return nil, err
		}
		found.Add(list)
	}
	c.judged = judged{s, keeps && len(found.List()) == 0, o.OnlyGuards}
	return transitionFindings(&found, of), nil
}

// transitionFindings returns each finding of the transition rules once. If a finding doesn't concern all
// clients, its message names the clients, or their parameters.
func transitionFindings(found *diag.Owned, of []variants.Transition) (list diag.List) {
	classes := len(of) // without the losses of clients
	if i := slices.IndexFunc(of, func(t variants.Transition) bool { return t.Clients != nil }); i >= 0 {
		classes = i
	}
	for _, f := range found.List() {
		switch first := of[f.Owners[0]]; {
		case first.Clients != nil:
			f.Message += fmt.Sprintf("; this concerns %s: %s", diag.Count(len(first.Clients), "client"), diag.Few(first.Clients, mostClients))
		case len(f.Owners) < classes:
			f.Message += "; this concerns a client with " + first.Parameters.String()
		}
		list = append(list, f.Diagnostic)
	}
	return list.Sort()
}

// mostClients is the largest number of clients that a finding names.
const mostClients = 5
