package diff

import (
	"fmt"
	"strings"

	"xdspub/xds"
)

var addressSwap = &Rule{
	Code: "address-swap",
	Doc: `Running listeners exchange their addresses in one change.

Envoy takes listeners in one by one, and refuses one whose address another listener
has at that moment ("has duplicate address"). One that leaves an address can go out
first; for two that swap theirs there is no such order. Under a new name one of them
is fine: Envoy removes the old one before it takes in the new.`,
	Run: func(p *Pass) error {
		old, err := p.Old.Of(xds.Listener)
		if err != nil {
			return err
		}
		_, swaps := moves(old, p.New.Of(xds.Listener))
		for _, names := range swaps {
			quoted := make([]string, len(names))
			for i, n := range names {
				quoted[i] = fmt.Sprintf("%q", n)
			}
			p.Report(Finding{
				Resource: p.New.Lookup(xds.Listener, names[0]),
				Path:     "address",
				Message:  fmt.Sprintf("listeners %s take each other's address: Envoy would refuse all of them", strings.Join(quoted, " and ")),
				Help:     "give one of them a new name: Envoy removes the old one before it takes in the new",
			})
		}
		return nil
	},
}
