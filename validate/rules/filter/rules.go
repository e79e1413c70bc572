// Package filter holds the rules about filters, HTTP and network, and the chains that they form.
package filter

import (
	"xdspub/validate"
	"xdspub/validate/facts"
)

// Rules are the rules of the family, sorted by code.
var Rules = facts.Family("filter", validate.Envoy,
	conflictingCache,
	conflictingFileManager,
	connectionManagerOptions,
	duplicateUpgrade,
	filterConflict,
	filterIncomplete,
	filterValue,
	metadataExtraction,
	protoDescriptor,
	rateLimit,
	rateLimitFields,
	rbacPolicy,
	tapSink,
	terminalFilter,
	udpTunnel,
	userList,
	wasmCode,
)
