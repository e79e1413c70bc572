package clients

import "xdspub/diag"

// Codes are the codes of the findings about clients.
var Codes = []diag.Code{RefusedByClient}

// RefusedByClient is the code of a resource that a client rejected.
var RefusedByClient = diag.Code{Name: "refused-by-client", Doc: `A client rejected a served resource.

The client of xdspub serve keeps the resources that it had, and does not get this one again before
the snapshot changes. With --ack-quorum, too many rejections take the snapshot back for all clients.
The message is the client's own; xdspub status shows which clients reject what.`}
