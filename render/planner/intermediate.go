package planner

import (
	"context"
	"slices"

	"xdspub/diag"
	"xdspub/render"
	"xdspub/validate/transition"
	"xdspub/xds"
)

// intermediateLDS returns the LDS files to publish before the LDS file of the Snapshot. In each file, a
// listener that can't have its address yet stays as published, or is left out.
func (c *change) intermediateLDS(ctx context.Context, t render.Target) ([]render.File, diag.List) {
	waits, _ := transition.Moves(c.st.Listeners, c.s.Of(xds.Listener))
	var files []render.File
	last := 0
	for _, n := range waits {
		last = max(last, n)
	}
	for round := range last {
		t.Pinned = make(map[string]*xds.Resource)
		for name, n := range waits {
			if n > round {
				t.Pinned[name] = nil
			}
		}
		for _, r := range c.st.Listeners {
			if _, held := t.Pinned[r.Name]; held {
				t.Pinned[r.Name] = r
			}
		}
		out, list := c.renderer.Render(ctx, c.s, t)
		if out == nil {
			return nil, list
		}
		i := slices.IndexFunc(out.Files, func(f render.File) bool { return f.Type == xds.Listener })
		files = append(files, out.Files[i])
	}
	return files, nil
}
