package transition

import (
	"fmt"
)

var bindToPortChanged = &Rule{
	Code: "bind-to-port-changed",
	Doc: `A running listener changes bind_to_port.

Envoy passes the sockets of a listener on to its next version, or to a listener of another name
that replaces it, if addresses and socket options stay the same. A listener with bind_to_port:
false has no socket to pass on. If the next version binds, Envoy crashes (1.40.0, "Caught
Segmentation fault"), or, if otherwise only its filter chains change, does not listen. With a new
name or another address it listens. In the other direction Envoy continues to listen (a
warning): in the same listener it serves as before, under a new name connections hang.`,
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
				Message: fmt.Sprintf("running listener %q changes bind_to_port to true: Envoy would crash or not listen", l.Name),
				Help:    "give the listener a new name",
			}
			if o.bound() {
				f.Message = fmt.Sprintf("listener %q inherits the socket of the running listener %q, which continues to listen", l.Name, o.Name)
				f.Help, f.Warning = newSocketHelp, true
			}
			p.Report(f)
		}
		return nil
	},
}
