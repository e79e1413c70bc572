package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"xdspub/check"
	"xdspub/check/scope"
	"xdspub/cmd/settings"
	"xdspub/diag"
	"xdspub/render"
	"xdspub/render/planner"
	"xdspub/render/publish"
	"xdspub/watch"
	"xdspub/watch/pipeline"
	"xdspub/xds"
)

// treeSide is a source tree as a side of a difference.
type treeSide struct {
	path     string
	settings *call
	options  check.Options
	checked  *check.Result
}

// readTree checks a source tree, or the resources of a control plane.
func readTree(ctx context.Context, c *call, path string) (t treeSide, err error) {
	if settings.IsRemote(path) {
		return readServer(ctx, c, path)
	}
	t.path = path
	if t.settings, t.options, err = optionsOfClient(c, path); err != nil {
		return t, err
	}
	end := showProgress(c, "checking "+path)
	t.checked, err = check.Once(ctx, t.options)
	end()
	return t, err
}

// accepted prints the findings, and returns an error if the tree would not be published. Effects of such a tree would
// be about a state that no Envoy gets.
func (t treeSide) accepted(c *call, name string) error {
	refused := t.checked.Invalid(t.settings.WarningsAsErrors.Value)
	if refused {
		printFindings(c, t.checked, true)
		return fmt.Errorf("%s: %s: it would not be published, so there is nothing to compare", name, t.checked.Summary)
	}
	return nil
}

// partly says on standard error that an old side has errors.
func (t treeSide) partly(c *call, name string) {
	if n := t.checked.Summary.Errors; n > 0 {
		fmt.Fprintf(c.App.ErrWriter, "%s has %s: it is compared as far as it can be read\n", diag.Printable(name), diag.Count(n, "error"))
	}
}

// trees compares two source trees, or what a control plane sends with a source tree.
func trees(ctx context.Context, c *call) (difference, error) {
	was, err := readTree(ctx, c, c.Args().Get(0))
	if err != nil {
		return difference{}, err
	}
	is, err := readTree(ctx, c, c.Args().Get(1))
	if err != nil {
		return difference{}, err
	}
	if err := is.accepted(c, is.path); err != nil {
		return difference{}, err
	}
	was.partly(c, was.path)
	return was.between(was.path, is.path, is), nil
}

// revisions compares a source tree with the tree at a git revision, or the trees at two revisions.
func revisions(ctx context.Context, c *call) (difference, error) {
	path := c.Args().First()
	at := func(option settings.Value[string]) (t treeSide, name string, err error) {
		t.path = path
		if t.settings, t.options, err = optionsOfClient(c, path); err != nil {
			return t, "", err
		}
		if t.checked, err = scope.At(ctx, t.options, option.Value); err != nil {
			return t, "", fmt.Errorf("--%s %s: %w", option.Name(), option.Value, err)
		}
		return t, path + " at " + option.Value, nil
	}
	was, from, err := at(c.FromRevision)
	if err != nil {
		return difference{}, err
	}
	var is treeSide
	to := path
	if c.ToRevision.Given() {
		is, to, err = at(c.ToRevision)
	} else {
		is, err = readTree(ctx, c, path)
	}
	if err != nil {
		return difference{}, err
	}
	if err := is.accepted(c, to); err != nil {
		return difference{}, err
	}
	was.partly(c, from)
	return was.between(from, to, is), nil
}

// outputAndTree compares what is published with what a publish of the source tree would write.
func outputAndTree(ctx context.Context, c *call) (difference, error) {
	out := c.Out.Value
	if _, err := os.Stat(out); errors.Is(err, fs.ErrNotExist) {
		return difference{}, fmt.Errorf("output directory %s: no such directory; xdspub render and xdspub watch create it", out)
	}
	tree, err := readTree(ctx, c, c.Args().First())
	if err != nil {
		return difference{}, err
	}
	m, err := publish.ReadManifest(out)
	if err != nil {
		return difference{}, err
	}
	if err := tree.settings.Check(settings.Inlining()...); err != nil {
		return difference{}, err
	}
	o := watch.Options{Options: pipeline.Options{
		Source: tree.options, Out: out, EnvoyPath: m.EnvoyPath, Format: render.FormatNamed(m.Format),
		Endpoints: planner.EndpointsMode(tree.settings.EDS.Value), InotifyBudget: tree.settings.InotifyBudget.Value,
	}, WarningsAsErrors: tree.settings.WarningsAsErrors.Value}
	controller := watch.New(o)
	plan, err := controller.Plan(ctx, tree.checked)
	if err != nil {
		return difference{}, err
	}
	if err := tree.accepted(c, tree.path); err != nil {
		return difference{}, err
	}
	d, err := controller.Difference(plan)
	return difference{From: out, To: tree.path, Diff: d, NotCompared: []string{}}.to(tree), err
}

// without returns a Snapshot without the resources of some types.
func without(s *xds.Snapshot, types []*xds.Type) *xds.Snapshot {
	skip := make(map[*xds.Type]bool)
	for _, t := range types {
		skip[t] = true
	}
	var keep []*xds.Resource
	for _, r := range s.All() {
		if !skip[r.Type] {
			keep = append(keep, r)
		}
	}
	return xds.NewSnapshot(keep)
}
