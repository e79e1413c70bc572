package transition

import (
	"fmt"
	"strings"

	"xdspub/xds"
)

var addressSwap = &Rule{
	Code: "address-swap",
	Doc: `Running listeners exchange their addresses in one change.

Envoy updates listeners one by one, and rejects one whose address another listener has at that
moment ("has duplicate address"). xdspub can move a listener away from an address first; if two
listeners exchange addresses, no order works. Give one of them a new name: Envoy removes the old
listener before it adds the new one.`,
	Run: func(p *Pass) error {
		s, err := socketsOf(p)
		if err != nil {
			return err
		}
		for _, names := range s.swaps {
			quoted := make([]string, len(names))
			for i, n := range names {
				quoted[i] = fmt.Sprintf("%q", n)
			}
			p.Report(Finding{
				Resource: p.New.Lookup(xds.Listener, names[0]),
				Path:     "address",
				Message:  fmt.Sprintf("listeners %s exchange their addresses: Envoy would reject all of them", strings.Join(quoted, " and ")),
				Help:     "give one of them a new name: Envoy removes the old listener before it adds the new one",
			})
		}
		return nil
	},
}
