package diff

import (
	"fmt"
)

var reusePortChanged = &Rule{
	Code: "reuse-port-changed",
	Doc: `A running listener changes enable_reuse_port.

Envoy refuses it ("reuse port cannot be changed during an update"), even where the
address changes as well. A field that is not there means true. Under a new name Envoy
takes the listener.`,
	Run: func(p *Pass) error {
		s, err := socketsOf(p)
		if err != nil {
			return err
		}
		for _, l := range s.listeners {
			if o := s.old[l.Name]; o != nil && o.reusesPort() != l.reusesPort() {
				p.Report(Finding{
					Resource: l.Resource, Path: "enable_reuse_port",
					Message: fmt.Sprintf("listener %q runs with enable_reuse_port: %t, which can't change: Envoy would refuse it", l.Name, o.reusesPort()),
					Help:    "give the listener a new name",
				})
			}
		}
		return nil
	},
}
