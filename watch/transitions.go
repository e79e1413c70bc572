package watch

import (
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
}

// transitions runs the transition rules on the change from the served snapshot to s. An edit that can't
// affect the rules costs nothing.
func (c *Controller) transitions(s *xds.Snapshot) (diag.List, error) {
	rules := c.options.Source.Rules
	if !rules.ForEnvoys() {
		return nil, nil
	}
	changes, known := s.ChangesSince(c.served)
	keeps := known && transition.Keeps(changes, s)
	if keeps && c.judged.still && c.judged.snapshot == c.served {
		c.judged.snapshot = s
		return nil, nil
	}
	of := c.options.Server.Transitions(s)
	var found diag.Owned
	for _, t := range of {
		list, err := transition.Transitions(transition.Served{Snapshot: t.From}, t.To, transition.Options{Disable: rules.Disable})
		if err != nil {
			c.judged = judged{}
			return nil, err
		}
		found.Add(list)
	}
	c.judged = judged{s, keeps && len(found.List()) == 0}
	return transitionFindings(&found, of), nil
}

// transitionFindings returns each finding of the transition rules once. If a finding doesn't concern all
// clients, its message names the parameters of the clients.
func transitionFindings(found *diag.Owned, of []variants.Transition) (list diag.List) {
	for _, f := range found.List() {
		if len(f.Owners) < len(of) {
			f.Message += "; this concerns a client with " + of[f.Owners[0]].Parameters.String()
		}
		list = append(list, f.Diagnostic)
	}
	return list.Sort()
}
