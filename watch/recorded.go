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

// recorded returns the snapshot in the output directory, which clients may have from an earlier process.
// recorded omits resources with errors, unless next replaces them. Values that the files have inlined are as in
// next. If the directory has secrets with constraints, recorded sets c.apart. recorded returns nil if there is
// nothing to restore: the Server serves a snapshot already, the directory is not open or empty, or it has
// exactly the snapshot next.
func (c *Controller) recorded(ctx context.Context, next *xds.Snapshot) *xds.Snapshot {
	if c.options.Server == nil || c.options.Server.Served() != nil || c.dir == nil {
		return nil
	}
	m, err := c.dir.Reader().Manifest()
	if err != nil || m.Snapshot == "" || m.Snapshot == next.ID() && len(m.Retired) == 0 {
		return nil // Plan reports a damaged record
	}
	c.apart = c.apart || m.RestrictedSecrets // the files don't name the clients
	c.live.part = m.Part
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

// mostLeftOut is the largest number of resources that a log line names.
const mostLeftOut = 5

// resourcesOf returns the resources of findings, sorted and unique.
func resourcesOf(list diag.List) []string {
	var all []string
	for _, d := range list {
		all = append(all, fmt.Sprintf("%s %q", xds.TypeOfURL(d.Resource.Type).Noun, d.Resource.Name))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// tellsApart reports whether clients of the Server may get other variants than the output directory has.
// tellsApart returns true if the clients of the tree's variants are unknown.
func (c *Controller) tellsApart(checked *check.Result) bool {
	return c.options.Server != nil && c.options.Source.Client == nil && (len(checked.ClientsUnknownIn) > 0 || checked.Variants.Varies())
}

// withRetired returns a Snapshot of the resources of s, and of the recorded resources whose names s lacks. For
// a name in both, the result has the variants of s, because the output directory doesn't record which variants
// clients had. withRetired omits listeners, which retire at once and which some clients may never have had.
// withRetired also omits secrets, because their constraints are unknown.
func withRetired(s, recorded *xds.Snapshot) *xds.Snapshot {
	all := s.All()
	for _, r := range recorded.All() {
		if !r.Type.AtOnce && !r.HoldsSecret() && s.Lookup(r.Type, r.Name) == nil {
			all = append(all, r)
		}
	}
	return xds.NewSnapshot(all)
}

// restore makes the Server serve s, which is or derives from the recorded snapshot. The next snapshot then
// counts as a change of s: retired resources stay until their trim, and a listener may take over the address
// of another one.
func (c *Controller) restore(ctx context.Context, recorded, s *xds.Snapshot) error {
	if err := c.options.Server.Restore(ctx, s); err != nil {
		return err
	}
	c.accepted, c.served = recorded, s
	return nil
}

// serveAfter makes the Server serve s. If before, the recorded snapshot, is not nil, serveAfter restores it
// first.
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
