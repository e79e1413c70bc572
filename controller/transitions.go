package controller

import (
	"xdspub/diag"
	"xdspub/diff"
	"xdspub/xds"
)

// judged is a snapshot that the transition rules have judged.
type judged struct {
	snapshot *xds.Snapshot // nil for none
	// still means that they find nothing on the way from the snapshot to itself.
	still bool
}

// transitions judges the way from what the Server serves to a snapshot. An edit of what the rules do
// not go by costs nothing.
func (c *Controller) transitions(s *xds.Snapshot) (diag.List, error) {
	rules := c.options.Source.Rules
	if c.options.Server == nil || !rules.ForEnvoys() {
		return nil, nil
	}
	served := c.options.Server.Served()
	if served == nil {
		return nil, nil
	}
	changes, known := s.ChangesSince(c.accepted)
	keeps := known && diff.Keeps(changes, s)
	if keeps && c.judged.still && c.judged.snapshot == c.accepted {
		c.judged.snapshot = s
		return nil, nil
	}
	found, err := diff.Transitions(diff.Served{Snapshot: served}, s, diff.Options{Disable: rules.Disable})
	c.judged = judged{s, keeps && err == nil && len(found) == 0}
	return found, err
}
