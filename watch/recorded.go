package watch

import (
	"context"
	"fmt"
	"slices"

	"xdspub/check"
	"xdspub/diag"
	"xdspub/event"
	"xdspub/xds"
	"xdspub/xds/bind"
)

// recorded returns what is in the output directory where the Server serves nothing yet: clients may
// have it from a process before this one. Resources with errors are left out, as far as next does not
// replace them; what differs from next only in what the files have inlined is as in next, and as clients
// had it. It is nil where there is nothing to restore. If the directory has secrets for some clients only,
// clients are told apart from then on, as they are by a tree with variants.
func (c *Controller) recorded(ctx context.Context, next *xds.Snapshot) *xds.Snapshot {
	if c.options.Server == nil || c.options.Server.Served() != nil || c.dir == nil {
		return nil
	}
	m, err := c.dir.Reader().Manifest()
	if err != nil || m.Snapshot == "" || m.Snapshot == next.ID() && len(m.Retired) == 0 {
		return nil // the plan says what is wrong with the record
	}
	c.apart = c.apart || m.RestrictedSecrets // no file says which clients
	s, err := c.pipeline.Published()
	if err != nil {
		c.log.Write(event.PublishedLeftOut{LeftOut: "all", Error: err.Error()})
		return nil
	}
	s, wrong := c.options.Source.Rules.Fit(ctx, s, next)
	if len(wrong) > 0 {
		c.log.Write(event.PublishedLeftOut{LeftOut: diag.Few(resourcesOf(wrong), mostLeftOut), Error: wrong[0].Message})
	}
	if s.Len() == 0 {
		return nil
	}
	return bind.Restore(ctx, s, next)
}

// mostLeftOut is how many resources a line of the log lists.
const mostLeftOut = 5

// resourcesOf returns the resources that findings are about, each once.
func resourcesOf(list diag.List) []string {
	var all []string
	for _, d := range list {
		all = append(all, fmt.Sprintf("%s %q", xds.TypeOfURL(d.Resource.Type).Noun, d.Resource.Name))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// tellsApart reports whether clients of the Server may get other variants than the output directory has,
// or nobody knows.
func (c *Controller) tellsApart(checked *check.Result) bool {
	return c.options.Server != nil && c.options.Source.Client == nil && (checked.ClientsUnknown || checked.Variants.Varies())
}

// withRetired returns a Snapshot with variants and, of what was recorded, what it no longer has. The output
// directory does not say which variants clients had, so they get those of the Snapshot. Listeners
// are left out: they go at once, and some clients may never have had them. So are secrets, since nobody
// knows which clients they were for.
func withRetired(s, recorded *xds.Snapshot) *xds.Snapshot {
	all := s.All()
	for _, r := range recorded.All() {
		if !r.Type.AtOnce && !r.HoldsSecret() && s.Lookup(r.Type, r.Name) == nil {
			all = append(all, r)
		}
	}
	return xds.NewSnapshot(all)
}

// restore has the Server serve s, which is what was recorded, or follows from that. What comes next is then a
// change of it: what that no longer has stays until its trim, and a listener may take an address of another one.
func (c *Controller) restore(ctx context.Context, recorded, s *xds.Snapshot) error {
	if err := c.options.Server.Restore(ctx, s); err != nil {
		return err
	}
	c.accepted, c.served = recorded, s
	return nil
}

// serveAfter has the Server serve a snapshot, after what was recorded.
func (c *Controller) serveAfter(ctx context.Context, before, s *xds.Snapshot) error {
	if before != nil {
		first := before
		if c.apart {
			first = withRetired(s, before)
		}
		if err := c.restore(ctx, before, first); err != nil {
			return err
		}
	}
	return c.options.Server.Publish(ctx, s)
}
