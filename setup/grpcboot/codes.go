package grpcboot

import "xdspub/diag"

// Codes are the codes of the findings of this package, sorted by name. Documents that are not JSON get findings
// with codes of package load.
var Codes = []diag.Code{codeRefused, codeIgnored}

var (
	codeRefused = diag.Code{Name: "grpc-bootstrap", Doc: `A gRPC client refuses the bootstrap, or can't use it.

A client that can't read its bootstrap makes no connection: each of its calls by xDS fails. Some
faults stop only one of the implementations. grpc-go crashes on null in place of a server or of an
authority, and on a negative refresh_interval. Clients on C-core (C++, Python, Ruby, PHP) crash on a
server that is listed twice and is down, and refuse a key that is set twice. The format is
described in doc/grpc_xds_bootstrap_format.md of gRPC's repository.`}

	codeIgnored = diag.Code{Name: "grpc-bootstrap-ignored", Severity: diag.Warning, Doc: `A gRPC client ignores a part of its bootstrap.

Clients skip fields, credentials and server features that they do not know, so that one file can
serve old and new clients. A misspelt name is skipped in the same way. A client uses the first
channel credentials of a known type. Credentials behind a type that all clients know are never used.`}
)
