package listener

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"xdspub/xds"
)

// placedChain is a filter chain of a listener, with its path.
type placedChain struct {
	*listenerv3.FilterChain
	path xds.Path
}

// filterChains returns the filter chains of a listener. The default filter chain is the last.
func filterChains(l *listenerv3.Listener) (chains []placedChain) {
	for i, c := range l.GetFilterChains() {
		chains = append(chains, placedChain{c, xds.Path("filter_chains").Index(i)})
	}
	if c := l.GetDefaultFilterChain(); c != nil {
		chains = append(chains, placedChain{c, "default_filter_chain"})
	}
	return chains
}

// placedAddress is an address of a listener, with its path.
type placedAddress struct {
	*corev3.Address
	path xds.Path
}

// addresses returns the addresses of a listener, the main address first.
func addresses(l *listenerv3.Listener) (list []placedAddress) {
	if l.GetAddress() != nil {
		list = append(list, placedAddress{l.GetAddress(), "address"})
	}
	for i, a := range l.GetAdditionalAddresses() {
		list = append(list, placedAddress{a.GetAddress(), xds.Path("additional_addresses").Index(i).Field("address")})
	}
	return list
}
