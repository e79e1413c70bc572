package check

import (
	"path/filepath"
	"slices"
	"time"

	"xdspub/diag"
	"xdspub/setup/grpcboot"
	"xdspub/xds"
)

// GRPCBootstrapFile checks a file with a bootstrap of gRPC. It returns an error if the file could not be read.
func GRPCBootstrapFile(path string, o Rules) (*Result, error) {
	start := time.Now()
	read, err := grpcboot.Read(path)
	if err != nil {
		return nil, err
	}
	timings := o.timings(start)
	read.Diagnostics = slices.DeleteFunc(read.Diagnostics, func(d diag.Diagnostic) bool { return slices.Contains(o.Disable, d.Code) })
	r := ofGRPCBootstrap(read)
	r.Timings = timings
	o.judgeIn(filepath.Dir(path), r)
	r.addRead(read.Diagnostics, nil) // JSON has no comments
	return r, nil
}

// GRPCBootstrap returns a Result with the findings about a bootstrap of gRPC. The Result has no resources.
func GRPCBootstrap(read *grpcboot.Result) *Result {
	r := ofGRPCBootstrap(read)
	r.Add(read.Diagnostics)
	return r
}

// ofGRPCBootstrap returns the Result of GRPCBootstrap without findings.
func ofGRPCBootstrap(read *grpcboot.Result) *Result {
	r := &Result{Snapshot: xds.NewSnapshot(nil), Line: read.Line}
	r.Summary.Files = 1
	return r
}
