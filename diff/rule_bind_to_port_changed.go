package diff

import (
	"fmt"
)

var bindToPortChanged = &Rule{
	Code: "bind-to-port-changed",
	Doc: `A running listener changes bind_to_port.

Envoy hands the sockets of a listener to its next version, and to one of another name
that comes as they go, where addresses and socket options stay as they are. A listener
that was not bound has none to hand over: once the next version is to be bound, Envoy
crashes (1.40.0, "Caught Segmentation fault"), or, where nothing but its filter chains
changes beside that, does not listen. Under a new name, or with another address, it does.
The other way round Envoy goes on listening (a warning): in the same listener it
serves as before, under a new name the connections hang.`,
	Run: func(p *Pass) error {
		s, err := socketsOf(p)
		if err != nil {
			return err
		}
		for _, l := range s.listeners {
			o := s.keeps(l)
			if o == nil || o.bound() == l.bound() {
				continue
			}
			f := Finding{
				Resource: l.Resource, Path: "bind_to_port",
				Message: fmt.Sprintf("listener %q runs and is not bound: Envoy would crash, or not listen", l.Name),
				Help:    "give the listener a new name",
			}
			if o.bound() {
				f.Message = fmt.Sprintf("listener %q gets the socket of the running %q, which goes on listening", l.Name, o.Name)
				f.Help, f.Warning = newSocketHelp, true
			}
			p.Report(f)
		}
		return nil
	},
}
