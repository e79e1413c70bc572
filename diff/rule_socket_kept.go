package diff

import (
	"fmt"

	"xdspub/diag"
	"xdspub/xds"
)

var socketKept = &Rule{
	Code:     "socket-kept",
	Severity: diag.Warning,
	Doc: `A listener changes a socket setting that has no effect until a restart.

Envoy hands the sockets of a listener to its next version, and to one of another name
that comes as they go, where addresses and socket options stay as they are. It then
takes enable_mptcp, ipv4_compat and the mode of a pipe for changed, counts a success, and
the socket stays as it was until the next restart.`,
	Run: func(p *Pass) error {
		s, err := socketsOf(p)
		if err != nil {
			return err
		}
		for _, l := range s.listeners {
			o := s.keeps(l)
			if o == nil {
				continue
			}
			report := func(path xds.Path, message string) {
				p.Report(Finding{
					Resource: l.Resource, Path: path,
					Message: fmt.Sprintf("listener %q gets the socket of the running %q, and that %s", l.Name, o.Name, message),
					Help:    newSocketHelp,
				})
			}
			if was := o.config.GetEnableMptcp(); was != l.config.GetEnableMptcp() {
				report("enable_mptcp", fmt.Sprintf("stays with enable_mptcp: %t", was))
			}
			for _, a := range l.addresses {
				b := o.at(a)
				if was := b.GetSocketAddress().GetIpv4Compat(); was != a.GetSocketAddress().GetIpv4Compat() {
					report(a.path.Field("socket_address").Field("ipv4_compat"), fmt.Sprintf("stays with ipv4_compat: %t", was))
				}
				if was := b.GetPipe().GetMode(); was != a.GetPipe().GetMode() {
					report(a.path.Field("pipe").Field("mode"), "keeps its mode")
				}
			}
		}
		return nil
	},
}

// newSocketHelp is the help where a listener needs a new socket.
const newSocketHelp = "give it another address, or publish once without it and then with it"

// at returns the same address of a listener that is compatible.
func (l *listening) at(a address) address {
	for _, b := range l.addresses {
		if a.key() == b.key() {
			return b
		}
	}
	return address{}
}
