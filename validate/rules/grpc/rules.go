// Package grpc holds the rules about gRPC clients and servers, of the profile grpc.
//
// What they say was tried on grpc-go (serve/grpc_verdicts_test.go). Where the gRPC of another
// language is known to differ, the Doc of the rule says so.
package grpc

import (
	"xdspub/validate"
	"xdspub/validate/facts"
)

// Rules are the rules of the family, sorted by code.
var Rules = facts.Family("grpc", []validate.Profile{validate.GRPC},
	grpcCluster,
	grpcEndpoints,
	grpcHTTPFilter,
	grpcIgnoredField,
	grpcListener,
	grpcRoute,
	grpcTLS,
)
