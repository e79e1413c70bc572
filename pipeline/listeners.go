package pipeline

import (
	"slices"

	"xdspub/diag"
	"xdspub/render"
	"xdspub/xds"
)

// intermediateLDS are the LDS files that have to go out before the one of a Snapshot: in
// each of them those stay as they are published, or out, that can't have their
// address yet.
func (p *Pipeline) intermediateLDS(s *xds.Snapshot, st *state, t render.Target, waits map[string]int) ([]render.File, diag.List) {
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
		for _, r := range st.listeners {
			if _, held := t.Pinned[r.Name]; held {
				t.Pinned[r.Name] = r
			}
		}
		out, list := p.renderer.Render(s, t)
		if list.HasErrors() {
			return nil, list
		}
		i := slices.IndexFunc(out.Files, func(f render.File) bool { return f.Type == xds.Listener })
		files = append(files, out.Files[i])
	}
	return files, nil
}
