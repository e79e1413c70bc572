// Package listener holds the rules about listeners: addresses, options, filter chains, sockets.
package listener

import (
	"xdspub/validate"
	"xdspub/validate/facts"
)

// Rules are the rules of the family, sorted by code.
var Rules = facts.Family("listener", validate.Envoy,
	duplicateAddress,
	filterChainMatch,
	filterChainName,
	listenerAddress,
	listenerFilter,
	listenerFilterChains,
	listenerLoop,
	listenerOptions,
	overlappingFilterChains,
	preferredAddress,
	quicListener,
	socketOption,
	unreachableFilterChain,
)
