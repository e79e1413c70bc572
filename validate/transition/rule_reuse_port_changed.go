package transition

import (
	"fmt"
)

var reusePortChanged = &Rule{
	Code: "reuse-port-changed",
	Doc: `A running listener changes enable_reuse_port.

Envoy rejects the change ("reuse port cannot be changed during an update"), even if the address
changes too. An unset field means true. Give the listener a new name.`,
	Run: func(p *Pass) error {
		s, err := socketsOf(p)
		if err != nil {
			return err
		}
		for _, l := range s.listeners {
			if o := s.old[l.Name]; o != nil && o.reusesPort() != l.reusesPort() {
				p.Report(Finding{
					Resource: l.Resource, Path: "enable_reuse_port",
					Message: fmt.Sprintf("running listener %q has enable_reuse_port: %t, which can't change: Envoy would reject it", l.Name, o.reusesPort()),
					Help:    "give the listener a new name",
				})
			}
		}
		return nil
	},
}
