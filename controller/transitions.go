package controller

import (
	"slices"
	"xdspub/diag"
	"xdspub/diff"
	"xdspub/xds"
	"xdspub/xds/params"
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
	if !rules.ForEnvoys() {
		return nil, nil
	}
	changes, known := s.ChangesSince(c.served)
	keeps := known && diff.Keeps(changes, s)
	if keeps && c.judged.still && c.judged.snapshot == c.served {
		c.judged.snapshot = s
		return nil, nil
	}
	var found ofSome
	for _, t := range c.options.Server.Transitions(s) {
		list, err := diff.Transitions(diff.Served{Snapshot: t.From}, t.To, diff.Options{Disable: rules.Disable})
		if err != nil {
			c.judged = judged{}
			return nil, err
		}
		found.add(t.Parameters, list)
	}
	c.judged = judged{s, keeps && len(found.list) == 0}
	return found.findings(), nil
}

// ofSome are findings of which some clients have each.
type ofSome struct {
	clients int
	list    []ofClients
}

// ofClients is a finding, how many clients have it, and one of them.
type ofClients struct {
	diag.Diagnostic
	clients int
	first   params.Parameters
}

// add adds the findings of a client.
func (o *ofSome) add(client params.Parameters, list diag.List) {
	o.clients++
	for _, d := range list {
		same := func(is ofClients) bool {
			return is.Code == d.Code && is.Position == d.Position && is.Path == d.Path && is.Message == d.Message
		}
		if i := slices.IndexFunc(o.list, same); i >= 0 {
			o.list[i].clients++
			continue
		}
		o.list = append(o.list, ofClients{d, 1, client})
	}
}

// findings returns each once. One that not all clients have says for whom it is.
func (o *ofSome) findings() (list diag.List) {
	for _, is := range o.list {
		if is.clients < o.clients {
			is.Message += "; so it is for a client with " + is.first.String()
		}
		list = append(list, is.Diagnostic)
	}
	return list.Sort()
}
