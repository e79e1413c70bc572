// Package address holds the rules about addresses: of endpoints, DNS servers, sources, ranges, pipes.
package address

import (
	"xdspub/validate"
	"xdspub/validate/facts"
)

// Rules are the rules of the family, sorted by code.
var Rules = facts.Family("address", validate.Envoy,
	dnsResolver,
	endpointAddress,
	malformedAddress,
	pipePath,
	rangeWithoutLength,
	sourceAddress,
)
