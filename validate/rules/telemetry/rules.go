// Package telemetry holds the rules about access logs, tracers and statistics.
package telemetry

import "xdspub/validate"

// Rules are all of them, sorted by code.
var Rules = []*validate.Rule{
	incompleteTracer,
	logFilePath,
	statsMatcher,
	unusableAccessLog,
}
