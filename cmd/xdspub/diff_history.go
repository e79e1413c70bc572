package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"xdspub/check"
	"xdspub/cmd/settings"
	"xdspub/render/history"
	"xdspub/render/publish"
	"xdspub/xds"
	"xdspub/xds/variants"
)

// entrySide is an entry of the history as a side of a difference.
type entrySide struct {
	name     string
	snapshot *xds.Snapshot // with all variants
}

// entries compares an entry of the history of --out with another entry, with a source tree, or with the entry that is
// published.
func entries(ctx context.Context, c *call) (difference, error) {
	h, err := openHistory(c.Out.Value)
	if err != nil {
		return difference{}, err
	}
	defer h.Close()
	was, err := firstEntry(c, h, time.Now())
	if err != nil {
		return difference{}, err
	}
	if c.NArg() > 0 {
		return entryAndTree(ctx, c, h, was)
	}
	var is history.Item
	if c.ToRevision.Given() {
		is, err = optionEntry(h, c.ToRevision)
	} else {
		is, err = publishedEntry(c.Out.Value, h)
	}
	if err != nil {
		return difference{}, err
	}
	v, err := c.withTypes()
	if err != nil {
		return difference{}, err
	}
	client, err := clientNamed(v, v.Param, v.ClientTarget)
	if err != nil {
		return difference{}, err
	}
	a, err := loadEntry(v, h, was)
	if err != nil {
		return difference{}, err
	}
	b, err := loadEntry(v, h, is)
	if err != nil {
		return difference{}, err
	}
	// An entry without variants is of one client. Its constraints need not match the parameters of this command.
	if v.Param.Given() || v.ClientTarget.Given() || variants.Of(a.snapshot).Varies() || variants.Of(b.snapshot).Varies() {
		a.snapshot, b.snapshot = variants.Of(a.snapshot).For(client).Snapshot, variants.Of(b.snapshot).For(client).Snapshot
	}
	return between(a.name, b.name, a.snapshot, b.snapshot, nil), nil
}

// entryAndTree compares an entry of the history with a source tree, for the client of the tree.
func entryAndTree(ctx context.Context, c *call, h *history.History, was history.Item) (difference, error) {
	tree, err := readTree(ctx, c, c.Args().First())
	if err != nil {
		return difference{}, err
	}
	if err := tree.accepted(c, tree.path); err != nil {
		return difference{}, err
	}
	e, err := loadEntry(tree.settings, h, was)
	if err != nil {
		return difference{}, err
	}
	client, err := clientNamed(tree.settings, tree.settings.Param, tree.settings.ClientTarget)
	if err != nil {
		return difference{}, err
	}
	entry := treeSide{checked: &check.Result{Snapshot: variants.Of(e.snapshot).For(client).Snapshot}}
	return entry.between(e.name, tree.path, tree), nil
}

// firstEntry returns the entry of --from or --at, or else the entry of what is published.
func firstEntry(c *call, h *history.History, now time.Time) (history.Item, error) {
	switch {
	case c.FromRevision.Given():
		return optionEntry(h, c.FromRevision)
	case !c.At.Given():
		return publishedEntry(c.Out.Value, h)
	}
	at, err := timeOf(c.At, now)
	if err != nil {
		return history.Item{}, err
	}
	item, err := h.At(at)
	if err != nil {
		err = &exit{exitUsage, err}
	}
	return item, err
}

// optionEntry returns the entry that an option names. The name of a git revision is an error that says so.
func optionEntry(h *history.History, option settings.Value[string]) (history.Item, error) {
	item, err := h.Find(option.Value)
	if err == nil {
		return item, nil
	}
	if _, unknown := errors.AsType[*history.UnknownError](err); unknown {
		if of, e := h.Revision(option.Value); e == nil {
			err = fmt.Errorf("it is a git commit, and --%s with --out names an entry of the history: the commit was published as entry %s", option.Name(), of.ID)
		} else {
			err = fmt.Errorf("%w; without --out, --%s names a git revision", err, option.Name())
		}
	}
	return item, &exit{exitUsage, fmt.Errorf("--%s %s: %w", option.Name(), option.Value, err)}
}

// publishedEntry returns the entry of what is published.
func publishedEntry(out string, h *history.History) (history.Item, error) {
	m, err := publish.ReadManifest(out)
	if err != nil {
		return history.Item{}, err
	}
	item, ok := h.LatestOf(m.Snapshot)
	if m.Layout == 0 { // the directory of serve --state
		item, ok = h.Latest()
	}
	if !ok {
		return item, fmt.Errorf("the published snapshot %s is not in the history of %s: name the other side, by --to ID or SRC", m.Snapshot, out)
	}
	return item, nil
}

// loadEntry reads the resources of an entry.
func loadEntry(v *call, h *history.History, i history.Item) (entrySide, error) {
	s, err := h.Load(i.ID, v.Types.Registry)
	return entrySide{fmt.Sprintf("entry %s of %s", i.ID, i.Time.Local().Format(timeFormat)), s}, err
}
