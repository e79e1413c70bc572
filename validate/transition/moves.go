package transition

import (
	"slices"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"xdspub/xds"
)

// Moves returns for each new listener, by name, how many published listeners must leave an
// address, one after the other, before it can take its own; listeners that need not wait are left
// out. swaps are the listeners that exchange their addresses, each group sorted by name: there is no
// order in which Envoy would take them, unless one of each group goes first.
//
// Envoy goes through the LDS file in order, and refuses a listener whose address another one has
// at that moment. It removes listeners first.
func Moves(old, new []*xds.Resource) (waits map[string]int, swaps [][]string) {
	has := make(map[xds.Socket]string) // who has an address now
	for _, r := range old {
		for _, s := range xds.Sockets(r.Message().(*listenerv3.Listener)) {
			has[s] = r.Name
		}
	}
	exists := make(map[string]bool, len(new))
	for _, r := range new {
		exists[r.Name] = true
	}
	before := make(map[string][]string) // the listeners that have to leave first
	for _, r := range new {
		for _, s := range xds.Sockets(r.Message().(*listenerv3.Listener)) {
			if leaver, taken := has[s]; taken && leaver != r.Name && exists[leaver] {
				before[r.Name] = append(before[r.Name], leaver)
			}
		}
	}
	waits = make(map[string]int)
	done := make(map[string]bool)
	var way []string // listeners that wait for each other
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
