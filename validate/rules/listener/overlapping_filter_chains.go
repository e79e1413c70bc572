package listener

import (
	"fmt"
	"net/netip"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var overlappingFilterChains = &validate.Rule{
	Code: "overlapping-filter-chains",
	Doc: `Two filter chains of a listener match the same connections.

Envoy selects a filter chain by destination port, destination address, server name, transport
protocol, application protocol, directly connected address, source type, source address and source
port, in this order. It rejects two chains that share a value of every criterion ("multiple filter
chains with overlapping matching rules", "has the same matching rules"). An unset criterion counts
as a value. Each address range, cut to its length, is a value, too. Server names are compared in
lower case, and *.example.com equals .example.com. A duplicate value within one chain is rejected
with the same words.

10.0.0.0/8 and 10.1.0.0/16 do not overlap: the narrower range wins. The default filter chain
and chains beside a filter_chain_matcher are not compared.`,
	Messages: []protoreflect.FullName{"envoy.config.listener.v3.Listener"},
	Node: func(p *validate.Pass, n *xds.Node) {
		l := n.Message.(*listenerv3.Listener)
		if t := facts.TransportOf(l); t == facts.LibraryCalls || t == facts.Datagrams || l.GetFilterChainMatcher() != nil {
			return
		}
		var chains []chainMatch
		for i, c := range l.GetFilterChains() {
			m := matchOf(c.GetFilterChainMatch())
			m.path = xds.Path("filter_chains").Index(i)
			if c.GetFilterChainMatch() != nil {
				m.path = m.path.Field("filter_chain_match")
			}
			chains = append(chains, m)
		}
		checkOverlaps(p, chains)
	},
}

func matchOf(m *listenerv3.FilterChainMatch) chainMatch {
	c := chainMatch{criteria: [9][]string{
		1: ranges(m.GetPrefixRanges()),
		2: serverNames(m.GetServerNames()),
		3: {m.GetTransportProtocol()},
		4: m.GetApplicationProtocols(),
		5: ranges(m.GetDirectSourcePrefixRanges()),
		6: {m.GetSourceType().String()},
		7: ranges(m.GetSourcePrefixRanges()),
	}}
	if port := m.GetDestinationPort(); port != nil {
		c.criteria[0] = []string{fmt.Sprint(port.GetValue())}
	}
	for _, port := range m.GetSourcePorts() {
		c.criteria[8] = append(c.criteria[8], fmt.Sprint(port))
	}
	for i, values := range c.criteria {
		if len(values) == 0 {
			c.criteria[i] = []string{""}
		}
	}
	return c
}

// ranges returns address ranges as Envoy compares them: the bits after the prefix are zero. An unset length is 0. A
// length above that of the address counts as the length of the address.
func ranges(list []*corev3.CidrRange) (texts []string) {
	for _, r := range list {
		text := r.GetAddressPrefix() // malformed-address reports a malformed one
		if ip, err := netip.ParseAddr(text); err == nil {
			bits := min(r.GetPrefixLen().GetValue(), uint32(ip.BitLen()))
			text = netip.PrefixFrom(ip.WithZone(""), int(bits)).Masked().String()
		}
		texts = append(texts, text)
	}
	return texts
}

func serverNames(list []string) (texts []string) {
	for _, name := range list {
		text := strings.ToLower(name)
		if strings.HasPrefix(text, "*.") {
			text = text[1:]
		}
		texts = append(texts, text)
	}
	return texts
}

// checkOverlaps reports each chain that lists a value twice or overlaps an earlier chain. Each chain gets at most
// one finding.
func checkOverlaps(p *validate.Pass, chains []chainMatch) {
	earlier := newChainIndex(len(chains))
	for i, c := range chains {
		if field, value, twice := c.repeats(); twice {
			p.Report(validate.Finding{
				Path:    c.path.Field(field),
				Message: fmt.Sprintf("the filter chain lists %s %q twice", field, value),
				Help:    "remove one of them",
			})
		} else if first, overlaps := earlier.overlapped(c); overlaps {
			p.Report(validate.Finding{
				Path:    c.path,
				Message: fmt.Sprintf("two filter chains match %s", earlier.shared(c, first)),
				Help:    "change one of the two filter_chain_match",
				Related: facts.Related(p.Resource, chains[first].path, "the other one is here"),
			})
		}
		earlier.add(i, c)
	}
}
