package trim

import (
	"xdspub/render"
	"xdspub/render/publish"
	"xdspub/render/published"
	"xdspub/xds"
)

// plan plans the removal of due entries. The other clusters stay as published, and no file is removed that
// these clusters, or listeners, name.
func (t *Trimmer) plan(due []publish.Retired) (publish.Plan, error) {
	st, err := t.out.State()
	if err != nil {
		return publish.Plan{}, err
	}
	goes := make(map[publish.Retired]bool, len(due))
	for _, g := range due {
		goes[publish.Retired{Cluster: g.Cluster, File: g.File}] = true
	}
	var stay, gone []*xds.Resource
	for _, r := range st.Clusters {
		if goes[publish.Retired{Cluster: r.Name}] {
			gone = append(gone, r)
		} else {
			stay = append(stay, r)
		}
	}
	byGone := make(map[string]int)
	for _, file := range t.out.Named(gone) {
		byGone[file]++
	}
	byClusters, byListeners := st.Named(xds.Cluster), st.Named(xds.Listener)
	for g := range goes {
		if byClusters[g.File]+byListeners[g.File] > byGone[g.File] {
			delete(goes, g)
		}
	}
	clusters, files := publish.Step{Name: "trim clusters"}, publish.Step{Name: "trim files"}
	m := st.Manifest
	m.Retired = nil
	for _, g := range st.Manifest.Retired {
		switch {
		case !goes[publish.Retired{Cluster: g.Cluster, File: g.File}]:
			m.Retired = append(m.Retired, g)
		case g.File != "":
			files.Remove = append(files.Remove, g.File)
		}
	}
	if len(gone) > 0 {
		file, err := t.renderer.Trimmed(t.out.Format(), stay)
		if err != nil {
			return publish.Plan{}, err
		}
		t.out.Rendered([]render.File{file})
		clusters.Write = append(clusters.Write, published.AsFile(file))
	}
	confirmer := t.envoys.Change(nil, publish.Refusal{Snapshot: m.Snapshot}).Confirmer()
	return publish.Plan{Steps: []publish.Step{clusters, files}, Gap: t.options.StepGap, Manifest: m, Confirm: confirmer}, nil
}
