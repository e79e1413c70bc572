// Package telemetry holds the rules about access logs, tracers and statistics.
package telemetry

import (
	"xdspub/validate"
	"xdspub/validate/facts"
)

// Rules are the rules of the family, sorted by code.
var Rules = facts.Family("telemetry", validate.Envoy,
	incompleteTracer,
	logFilePath,
	statsMatcher,
	unusableAccessLog,
)
