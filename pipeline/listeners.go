package pipeline

import (
	"fmt"
	"slices"
	"strings"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"xdspub/diag"
	"xdspub/render"
	"xdspub/xds"
)

// moves tells for each new listener how many have to leave an address, one after
// the other, before it can take its own; listeners that need not wait are left out.
// Envoy goes through the LDS file in order and refuses a listener whose address
// another one has at that moment; what it removes it removes first. Listeners that
// swap their addresses can't be told apart like that.
func moves(old, new []*xds.Resource) (waits map[string]int, list diag.List) {
	has := make(map[xds.Socket]string) // who has an address now
	for _, r := range old {
		for _, s := range xds.Sockets(r.Message.(*listenerv3.Listener)) {
			has[s] = r.Name
		}
	}
	byName := make(map[string]*xds.Resource, len(new))
	for _, r := range new {
		byName[r.Name] = r
	}
	before := make(map[string][]string) // the listeners that have to leave first
	for _, r := range new {
		for _, s := range xds.Sockets(r.Message.(*listenerv3.Listener)) {
			if leaver, taken := has[s]; taken && leaver != r.Name && byName[leaver] != nil {
				before[r.Name] = append(before[r.Name], leaver)
			}
		}
	}
	waits = make(map[string]int)
	done := make(map[string]bool)
	var way []string // those that wait for each other
	var visit func(name string) int
	visit = func(name string) int {
		if i := slices.Index(way, name); i >= 0 {
			names := slices.Sorted(slices.Values(way[i:]))
			list = append(list, swap(byName[names[0]], names))
			return 0
		}
		if done[name] {
			return waits[name]
		}
		way = append(way, name)
		for _, leaver := range before[name] {
			waits[name] = max(waits[name], 1+visit(leaver))
		}
		way = way[:len(way)-1]
		done[name] = true
		return waits[name]
	}
	for _, r := range new {
		visit(r.Name)
	}
	return waits, list
}

// leaving are the LDS files that have to go out before the one of a Snapshot: in
// each of them those stay as they are published, or out, that can't have their
// address yet.
func (p *Pipeline) leaving(s *xds.Snapshot, st *state, t render.Target, waits map[string]int) ([]render.File, diag.List) {
	var files []render.File
	last := 0
	for _, n := range waits {
		last = max(last, n)
	}
	for round := range last {
		t.Hold = make(map[string]*xds.Resource)
		for name, n := range waits {
			if n > round {
				t.Hold[name] = nil
			}
		}
		for _, r := range st.listeners {
			if _, held := t.Hold[r.Name]; held {
				t.Hold[r.Name] = r
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

func swap(r *xds.Resource, names []string) diag.Diagnostic {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = fmt.Sprintf("%q", n)
	}
	d := r.Diagnostic(codeAddressSwap.Name, "address", fmt.Sprintf("listeners %s take each other's address: Envoy would refuse all of them", strings.Join(quoted, " and ")))
	d.Help = "give one of them a new name: Envoy removes the old one before it takes in the new"
	return d
}
