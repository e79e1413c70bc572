// Package address holds the rules about addresses: of endpoints, DNS servers, sources, ranges, pipes.
package address

import "xdspub/validate"

// Rules are all of them, sorted by code.
var Rules = []*validate.Rule{
	dnsResolver,
	endpointAddress,
	malformedAddress,
	pipePath,
	rangeWithoutLength,
	sourceAddress,
}
