package check

import (
	"slices"
	"time"

	"xdspub/diag"
	"xdspub/grpcboot"
	"xdspub/xds"
)

// GRPCBootstrap makes a Result of what was found in a bootstrap of gRPC. That leads to no resources.
func GRPCBootstrap(read *grpcboot.Result, o Rules) *Result {
	r := &Result{Snapshot: xds.NewSnapshot(nil), Line: read.Line, Timings: o.timings(time.Now())}
	r.Summary.Files = 1
	r.Add(slices.DeleteFunc(read.Diagnostics, func(d diag.Diagnostic) bool { return slices.Contains(o.Disable, d.Code) }))
	return r
}
