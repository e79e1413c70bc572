package transition

import (
	"fmt"

	"xdspub/diag"
	"xdspub/xds"
)

var socketKept = &Rule{
	Code:     "socket-kept",
	Severity: diag.Warning,
	Doc: `A listener changes a socket setting that has no effect until a restart.

Envoy passes the sockets of a listener on to its next version, or to a listener of another name
that replaces it, if addresses and socket options stay the same. It accepts a change of
enable_mptcp, ipv4_compat or the mode of a pipe and counts a success, but the socket stays as it
was until Envoy restarts.`,
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
					Message: fmt.Sprintf("listener %q inherits the socket of the running listener %q, which %s", l.Name, o.Name, message),
					Help:    newSocketHelp,
				})
			}
			if was := o.config.GetEnableMptcp(); was != l.config.GetEnableMptcp() {
				report("enable_mptcp", fmt.Sprintf("keeps enable_mptcp: %t", was))
			}
			for _, a := range l.addresses {
				b := o.at(a)
				if was := b.GetSocketAddress().GetIpv4Compat(); was != a.GetSocketAddress().GetIpv4Compat() {
					report(a.path.Field("socket_address").Field("ipv4_compat"), fmt.Sprintf("keeps ipv4_compat: %t", was))
				}
				if was := b.GetPipe().GetMode(); was != a.GetPipe().GetMode() {
					report(a.path.Field("pipe").Field("mode"), "keeps its mode")
				}
			}
		}
		return nil
	},
}

// newSocketHelp is the help for a listener that needs a new socket.
const newSocketHelp = "change its address, or publish once without the listener and then with it"

// at returns the address of l with the key of a. l has such an address if it is compatible with a's listener.
func (l *listening) at(a address) address {
	for _, b := range l.addresses {
		if a.key() == b.key() {
			return b
		}
	}
	return address{}
}
