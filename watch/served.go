package watch

import (
	"cmp"
	"context"
	"fmt"

	"xdspub/event"
	"xdspub/render/history"
	"xdspub/render/publish"
	"xdspub/watch/operator"
	"xdspub/xds"
	"xdspub/xds/variants"
)

// openState opens Options.State.
func (c *Controller) openState() (err error) {
	if m, err := publish.ReadManifest(c.options.State); err != nil || m.Layout > 0 {
		return cmp.Or(err, fmt.Errorf("%s is an output directory: name another directory for --state, or publish files by --out", c.options.State))
	}
	if c.state, err = c.openDir(c.options.State); err != nil {
		return err
	}
	if err := operator.MarkServer(c.state); err != nil {
		c.Close()
		return err
	}
	if c.current == "" {
		c.current = c.lastServed()
	}
	return nil
}

// lastServed returns the id of the snapshot that was published last, from the history in Options.State; empty for none.
func (c *Controller) lastServed() string {
	h, err := history.Read(c.state.Path())
	if err != nil {
		c.log.Write(event.HistoryFailed{Error: err})
		return ""
	}
	defer h.Close()
	i, _ := h.Latest()
	return i.Snapshot
}

// sinceLast returns the change from the snapshot that an earlier process has served last to s, for a Server without an
// output directory. sinceLast returns nil if the history does not have that snapshot, or if clients get variants:
// without clients nobody knows which variants they had.
func (c *Controller) sinceLast(s *xds.Snapshot) ([]variants.Transition, error) {
	if c.state == nil || c.current == "" || c.options.Server.Served() != nil || s.Restricted() {
		return nil, nil
	}
	last, err := c.latest()
	if last == nil || err != nil || last.Restricted() {
		return nil, err
	}
	return []variants.Transition{{From: last, To: s}}, nil
}

// serveLast makes a Server without an output directory serve the snapshot that was published last, from the history.
// Clients have this snapshot from an earlier process. Without the snapshot in the history, serveLast does nothing.
func (c *Controller) serveLast(ctx context.Context) (served bool, err error) {
	if c.state == nil || c.options.Server == nil || c.current == "" || c.options.Server.Served() != nil {
		return false, nil
	}
	s, err := c.latest()
	if s == nil || err != nil {
		return false, err
	}
	if err := c.restore(ctx, s, s); err != nil {
		return false, err
	}
	c.live.snapshot = s
	return true, nil
}
