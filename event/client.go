package event

import (
	"log/slog"
	"time"
)

// ResponseRejected means that a client rejected a DiscoveryResponse (a NACK). The client keeps its resources,
// and the server does not send the rejected resources again before the snapshot changes. The event is logged
// once for a node, a type and a version, even if many clients have that node; and once more if a client has
// accepted another version in between.
//
// Do: see error for the client's reason. Correct the resources in the source tree.
type ResponseRejected struct {
	Node    string // the id of the client's node
	Type    string // the resource type
	Version string // of the response
	Error   string // the client's reason
}

func (ResponseRejected) kind() Kind {
	return Kind{"response-rejected", slog.LevelWarn, "a client rejected a response"}
}

// ResponseRetried means that a client rejected a DiscoveryResponse because the client has not fetched the code of
// a filter yet: a remote dynamic module with nack_on_cache_miss, or remote Wasm code with
// nack_on_code_cache_miss. The response is sent once more after the pause, and then after longer ones. If the
// client still rejects the response after --ack-timeout, the rejection counts (response-rejected).
//
// Do: nothing, if no response-rejected follows. Otherwise look whether the client reaches the server of the code.
type ResponseRetried struct {
	Node    string        // the id of the client's node
	Type    string        // the resource type
	Version string        // of the response
	Pause   time.Duration // until the response is sent once more
	Error   string        // the client's reason
}

func (ResponseRetried) kind() Kind {
	return Kind{"response-retried", slog.LevelWarn, "a client has not fetched the code of a filter yet; the response is sent once more"}
}

// ClientWithoutVariant means that a client subscribes to listeners or clusters, and the source tree has
// some for other dynamic parameters, but none for the client's. The server removes nothing from the client. A
// client without resources gets nothing. The event is logged once for a node and a type, until a client of
// that node gets a variant.
//
// Do: compare params with the constraints in the source tree: xdspub explain-params --param shows the
// resources of such a client. Correct --node-param, the client's node, or the constraints; or add a variant
// for the client.
type ClientWithoutVariant struct {
	Node    string // the id of the client's node
	Params  string // the dynamic parameters of the client
	Type    string // the resource type: LDS or CDS
	Missing string // names of resources for other clients
	Selects string // how many resources of each type the parameters select
}

func (ClientWithoutVariant) kind() Kind {
	return Kind{"client-without-variant", slog.LevelError, "no listener or no cluster is for the parameters of a client; the client keeps what it has"}
}

// ResourcesTrimmed means that the server no longer serves resources that left the snapshot one trim delay ago.
type ResourcesTrimmed struct {
	Removed int // how many
}

func (ResourcesTrimmed) kind() Kind {
	return Kind{"resources-trimmed", slog.LevelInfo, "removed resources that the snapshot no longer has"}
}

// Serving means that clients can connect to an address.
type Serving struct {
	Protocol string // grpc or http
	Address  string // host:port, or the path of a Unix socket
}

func (Serving) kind() Kind { return Kind{"serving", slog.LevelInfo, "serving clients"} }

// ServingPublished means that the source tree can't be published at the start. Clients get the snapshot
// that was published last.
type ServingPublished struct {
	Published string // the id of the published snapshot
}

func (ServingPublished) kind() Kind {
	return Kind{"serving-published", slog.LevelInfo, "serving the snapshot that was published last, until the source tree can be published"}
}

// PublishedLeftOut means that a server has started and does not serve a part of the output directory, because
// the part is unreadable or has errors. Clients keep the resources of this part until the source tree is
// served.
//
// Do: if nobody has edited the published files, look for errors of the disk. The next publish writes the files
// of the source tree again.
type PublishedLeftOut struct {
	LeftOut string // "all", or the names of some resources
	Error   string // the fault of the first resource, or why the directory can't be read
}

func (PublishedLeftOut) kind() Kind {
	return Kind{"published-left-out", slog.LevelWarn, "a part of the output directory can't be served"}
}

// SnapshotConfirmed means that the quorum of the clients that a snapshot concerns has acknowledged
// it (--ack-quorum).
type SnapshotConfirmed struct {
	Clients      int // how many clients the snapshot concerns
	Acknowledged int // how many have acknowledged it
}

func (SnapshotConfirmed) kind() Kind {
	return Kind{"snapshot-confirmed", slog.LevelInfo, "the clients confirmed the snapshot"}
}

// SnapshotUnconfirmed means that the quorum of the clients neither acknowledged nor rejected a snapshot within
// --ack-timeout. The server continues to serve the snapshot. If the quorum acknowledges the snapshot later, the event
// snapshot-confirmed follows.
//
// Do: `xdspub status --serve` shows the clients that are STALE or have NO VARIANT, with the resources. An Envoy
// acknowledges clusters once they are warm.
type SnapshotUnconfirmed struct {
	Clients      int    // how many the snapshot concerns
	Acknowledged int    // how many have acknowledged it
	Silent       string // nodes that have not answered
}

func (SnapshotUnconfirmed) kind() Kind {
	return Kind{"snapshot-unconfirmed", slog.LevelWarn, "the clients did not confirm the snapshot; it stays served"}
}

// SnapshotRefused means that too many clients rejected a snapshot to meet the quorum. The server serves the
// previous snapshot again, if one exists.
//
// Do: the findings after the event have the clients' reasons. Correct the source tree, or remove the cause and
// send SIGHUP.
type SnapshotRefused struct {
	Clients   int  // how many the snapshot concerns
	Rejected  int  // how many have rejected it
	TakenBack bool // the snapshot before is served again
}

func (SnapshotRefused) kind() Kind {
	return Kind{"snapshot-refused", slog.LevelWarn, "the clients rejected the snapshot"}
}
