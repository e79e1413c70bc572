package transition

import (
	"slices"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"xdspub/xds"
)

// Moves returns waits and swaps for a change from old to new listeners. waits maps the name of a new listener to
// the number of published listeners that must leave an address, one after the other, before the new listener can
// take its addresses. Listeners that need not wait are not in waits. swaps are groups of listeners that exchange
// addresses, each group sorted by name. For such a group, Envoy accepts no order, unless one listener of the group
// is removed first.
//
// Envoy goes through the LDS file in order, and refuses a listener if another listener has the address at that
// moment. Envoy removes listeners before it adds any.
func Moves(old, new []*xds.Resource) (waits map[string]int, swaps [][]string) {
	has := make(map[xds.Socket]string) // the listener that has the address in old
	for _, r := range old {
		for _, s := range xds.Sockets(r.Message().(*listenerv3.Listener)) {
			has[s] = r.Name
		}
	}
	exists := make(map[string]bool, len(new))
	for _, r := range new {
		exists[r.Name] = true
	}
	before := make(map[string][]string) // the listeners that must leave an address of the new listener
	for _, r := range new {
		for _, s := range xds.Sockets(r.Message().(*listenerv3.Listener)) {
			if leaver, taken := has[s]; taken && leaver != r.Name && exists[leaver] {
				before[r.Name] = append(before[r.Name], leaver)
			}
		}
	}
	waits = make(map[string]int)
	done := make(map[string]bool)
	var way []string // the listeners of the current chain: each waits for the next
	var visit func(name string) int
	visit = func(name string) int {
		if i := slices.Index(way, name); i >= 0 {
			swaps = append(swaps, slices.Sorted(slices.Values(way[i:])))
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
	return waits, swaps
}
