package main

import (
	"context"
	"fmt"
	"slices"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"xdspub/envoy"
	"xdspub/setup/importer"
	"xdspub/source/load"
	"xdspub/watch/status"
	"xdspub/xds"
	"xdspub/xds/bind"
)

// runningEnvoy is a running Envoy as a side of a difference.
type runningEnvoy struct {
	name     string
	snapshot *xds.Snapshot
	// redacted has the keys of the resources with a secret that the Envoy does not show.
	redacted []xds.Key
}

// dumped reads the resources of the Envoy of --envoy-admin.
func dumped(ctx context.Context, c *call, registry *xds.Registry) (e runningEnvoy, err error) {
	e.name = c.RunningEnvoy.Value
	admin, err := envoy.NewAdmin(e.name)
	if err != nil {
		return e, c.RunningEnvoy.Invalid(e.name, adminForm(e.name))
	}
	data, err := admin.ConfigDump(ctx)
	if err != nil {
		return e, err
	}
	in := load.Input{Name: e.name + "/config_dump", Format: "json", Data: data}
	in.Envoy = in.Envoy.With(registry)
	s, redacted, findings := importer.Running(in, importer.Options{})
	if s == nil {
		printList(c, findings)
		return e, fmt.Errorf("%s: its /config_dump can't be read", e.name)
	}
	e.snapshot, e.redacted = s, redacted
	return e, nil
}

// envoyAndTree compares the resources of a running Envoy with a source tree.
func envoyAndTree(ctx context.Context, c *call) (difference, error) {
	tree, err := readTree(ctx, c, c.Args().First())
	if err != nil {
		return difference{}, err
	}
	if err := tree.accepted(c, tree.path); err != nil {
		return difference{}, err
	}
	running, err := dumped(ctx, c, tree.settings.Types.Registry)
	if err != nil {
		return difference{}, err
	}
	d, err := running.against(ctx, tree.path, tree.checked.Snapshot)
	return d.to(tree), err
}

// envoyAndOutput compares the resources of a running Envoy with the published resources.
func envoyAndOutput(ctx context.Context, c *call) (difference, error) {
	v, err := c.withTypes()
	if err != nil {
		return difference{}, err
	}
	s, err := status.Snapshot(status.Options{Out: c.Out.Value, Registry: v.Types.Registry})
	if err != nil {
		return difference{}, err
	}
	running, err := dumped(ctx, c, v.Types.Registry)
	if err != nil {
		return difference{}, err
	}
	return running.against(ctx, c.Out.Value, s)
}

// against compares the Envoy with another side.
func (e runningEnvoy) against(ctx context.Context, name string, is *xds.Snapshot) (difference, error) {
	was := bind.Restore(ctx, e.snapshot, is)
	if was == nil {
		return difference{}, ctx.Err()
	}
	was, is = without(was, importer.NotShown), asked(without(is, importer.NotShown))
	for _, k := range e.redacted {
		was, is = hiding(was, k), hiding(is, k)
	}
	return between(e.name, name, was, is, importer.NotShown), nil
}

// hiding returns a Snapshot in which the same text replaces each secret of a resource.
func hiding(s *xds.Snapshot, k xds.Key) *xds.Snapshot {
	r := s.Lookup(k.Type, k.Name)
	if r == nil {
		return s
	}
	return s.Apply(xds.Change{Removed: []*xds.Resource{r}, Added: []*xds.Resource{r.Concealed(func([]byte) string { return "[redacted]" })}})
}

// asked returns a Snapshot without the resources that no other resource asks for, because Envoy does not load such
// resources.
func asked(s *xds.Snapshot) *xds.Snapshot {
	names := make(map[xds.Key]bool)
	for _, r := range s.All() {
		for _, sub := range r.Facts().Subscriptions {
			names[xds.Key{Type: sub.Target, Name: sub.Name}] = true
		}
		if scope, ok := r.Message().(*routev3.ScopedRouteConfiguration); ok {
			names[xds.Key{Type: xds.RouteConfiguration, Name: scope.GetRouteConfigurationName()}] = true
		}
	}
	var keep []*xds.Resource
	for _, r := range s.All() {
		if r.Type.Asked == xds.AsWhole || slices.Contains(xds.Entrypoints, r.Type) || names[r.Key] {
			keep = append(keep, r)
		}
	}
	return xds.NewSnapshot(keep)
}
