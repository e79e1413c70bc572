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

Envoy picks a filter chain by destination port, destination address, server name,
transport protocol, application protocol, directly connected address, source type,
source address and source port, in that order. It refuses two chains that share a
value of each ("multiple filter chains with overlapping matching rules", "has the same
matching rules"): a criterion that is left out is a value of its own, and so is each
range of addresses, cut to its length; server names are compared in lower case, and
*.example.com is the same as .example.com. A value that stands twice in one chain is
refused in the same words.

10.0.0.0/8 beside 10.1.0.0/16 is no overlap, the narrower wins. The default filter
chain and chains that a filter_chain_matcher picks are not compared.`,
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

// ranges are address ranges as Envoy writes them: cut to their length, which is 0
// where it is not set, and no longer than the address.
func ranges(list []*corev3.CidrRange) (texts []string) {
	for _, r := range list {
		text := r.GetAddressPrefix() // malformed-address
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

// checkOverlaps reports each chain that overlaps an earlier one, or itself, once.
func checkOverlaps(p *validate.Pass, chains []chainMatch) {
	earlier := newChainIndex(len(chains))
	for i, c := range chains {
		if field, value, twice := c.repeats(); twice {
			p.Report(validate.Finding{
				Path:    c.path.Field(field),
				Message: fmt.Sprintf("filter chain matches %s %q twice", field, value),
				Help:    "remove one of them",
			})
		} else if first, overlaps := earlier.overlapped(c); overlaps {
			p.Report(validate.Finding{
				Path:    c.path,
				Message: fmt.Sprintf("filter chain matches %s, as another one does", earlier.shared(c, first)),
				Help:    "give each filter chain a match of its own",
				Related: facts.Related(p.Resource, chains[first].path, "this one does"),
			})
		}
		earlier.add(i, c)
	}
}
