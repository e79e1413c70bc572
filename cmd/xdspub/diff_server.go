package main

import (
	"context"
	"slices"

	"xdspub/check"
	"xdspub/cmd/settings"
	"xdspub/xds"
)

// checkSides returns an error if an option does not fit the sides of diff.
func checkSides(c *call) error {
	sides := c.Args().Slice()
	i := slices.IndexFunc(sides, settings.IsRemote)
	if i < 0 {
		for _, g := range c.Line { // a variable may be for other commands
			if slices.ContainsFunc(settings.Upstream(), func(r settings.Row) bool { return r.Name() == g.Row.Name() }) {
				return usagef("--%s is for a control plane: write xds://HOST:PORT or xds+unix:PATH as OLD or SRC", g.Row.Name())
			}
		}
		return nil
	}
	if c.FromRevision.Given() && c.Out.Value == "" {
		return usagef("--from names a revision of a source tree, and %s is a control plane", sides[i])
	}
	return nil
}

// readServer reads the resources that a control plane sends to the node of this call.
func readServer(ctx context.Context, c *call, source string) (t treeSide, err error) {
	t.path = source
	if t.settings, err = c.withFile(source); err != nil {
		return t, err
	}
	if err := follow(t.settings, source, nil); err != nil {
		return t, err
	}
	if t.options, err = sourceOptions(t.settings, source, check.Streams); err != nil {
		return t, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer showProgress(c, "asking "+source)()
	runRemote(ctx, t.settings, nil)
	t.checked, err = check.Once(ctx, t.options)
	return t, err
}

// byName are the types whose names Envoy gets from its bootstrap, or from requests. A control plane does not list them.
var byName = []*xds.Type{xds.Runtime, xds.VirtualHost}

// between returns the difference between two sides that were checked. A control plane sends only what a client asks
// for. So between compares only these resources of the other side.
func (t treeSide) between(from, to string, is treeSide) difference {
	was, now := t.checked.Snapshot, is.checked.Snapshot
	if t.options.Remote == nil && is.options.Remote == nil {
		return between(from, to, was, now, nil).to(is)
	}
	left := make(map[*xds.Type]bool)
	was, now = sent(was, now, left), sent(now, was, left)
	skipped := slices.DeleteFunc(slices.Clone(byName), func(of *xds.Type) bool { return !left[of] })
	d := between(from, to, was, now, skipped).to(is)
	d.hidden = "the control plane sends by name alone"
	return d
}

// sent returns the resources of a side for which a client asks a control plane, as far as the other side tells which
// names of byName the client asks for. left gets the types of the resources that sent leaves out.
func sent(s, other *xds.Snapshot, left map[*xds.Type]bool) *xds.Snapshot {
	keep := asked(without(s, byName)).All()
	for _, of := range byName {
		for _, r := range s.Of(of) {
			if len(other.Named(r.Key)) > 0 {
				keep = append(keep, r)
			} else {
				left[of] = true
			}
		}
	}
	return xds.NewSnapshot(keep)
}
