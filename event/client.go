package event

import (
	"log/slog"
	"time"
)

// ResponseRejected means that a client rejected a DiscoveryResponse (a NACK). It keeps the resources
// that it had, and does not get these again before the snapshot changes. It is logged once for a node,
// a type and a version, be there many clients of that node; and once more where a client has taken
// another version in between.
//
// Do: error has the client's reason. Mend the resources in the source tree.
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

// ClientWithoutVariant means that a client asks for listeners or clusters, the source tree has some, and none
// of them is for its dynamic parameters. The client keeps what it has: nothing is removed from it. A client
// that has nothing gets nothing. It is logged once for a node and a type, until a client of that node gets
// a variant.
//
// Do: compare params with the constraints in the source tree: xdspub explain-params --param shows what such a
// client gets. Mend --node-param, the client's node, or the constraints; or add a variant for the client.
type ClientWithoutVariant struct {
	Node    string // the id of the client's node
	Params  string // the dynamic parameters of the client
	Type    string // the resource type: LDS or CDS
	Missing string // names of resources that are for other clients
	Selects string // how many resources of each type the parameters select
}

func (ClientWithoutVariant) kind() Kind {
	return Kind{"client-without-variant", slog.LevelError, "no listener or no cluster is for the parameters of a client; the client keeps what it has"}
}

// ResourcesTrimmed means that resources are no longer served that the snapshot has not had for one
// trim delay.
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

// ServingPublished means that the source tree can't be published at the start; clients get what is
// in the output directory.
type ServingPublished struct {
	Published string // the id of the published snapshot
}

func (ServingPublished) kind() Kind {
	return Kind{"serving-published", slog.LevelInfo, "serving what is in the output directory, until the source tree can be published"}
}

// PublishedLeftOut means that a server has started and does not serve some of what is in the output
// directory, since it can't be read, or has errors. Clients keep what they have of it until the source
// tree is served.
//
// Do: if nobody has edited the published files, look for errors of the disk. The next publish writes
// the files of the source tree again.
type PublishedLeftOut struct {
	LeftOut string // all, or some resources by name
	Error   string // what is wrong with the first
}

func (PublishedLeftOut) kind() Kind {
	return Kind{"published-left-out", slog.LevelWarn, "some of what is in the output directory can't be served"}
}

// SnapshotConfirmed means that the quorum of the clients that a snapshot concerns has acknowledged
// it (--ack-quorum).
type SnapshotConfirmed struct {
	Clients      int // how many it concerns
	Acknowledged int // how many have acknowledged it
}

func (SnapshotConfirmed) kind() Kind {
	return Kind{"snapshot-confirmed", slog.LevelInfo, "the clients confirmed the snapshot"}
}

// SnapshotUnconfirmed means that the quorum of the clients neither acknowledged a snapshot nor rejected
// it within --ack-timeout. It stays served.
//
// Do: xdspub status --serve shows which clients are STALE, and of what. An Envoy acknowledges clusters
// once they are warm.
type SnapshotUnconfirmed struct {
	Clients      int    // how many the snapshot concerns
	Acknowledged int    // how many have acknowledged it
	Silent       string // nodes that have not answered
}

func (SnapshotUnconfirmed) kind() Kind {
	return Kind{"snapshot-unconfirmed", slog.LevelWarn, "the clients did not confirm the snapshot; it stays served"}
}

// SnapshotRefused means that so many clients rejected a snapshot that the quorum can't be met. The
// snapshot before is served again, unless this was the first one.
//
// Do: the findings after it have the reasons of the clients. Correct the source tree, or mend the
// cause and send SIGHUP.
type SnapshotRefused struct {
	Clients   int  // how many the snapshot concerns
	Rejected  int  // how many have rejected it
	TakenBack bool // the snapshot before is served again
}

func (SnapshotRefused) kind() Kind {
	return Kind{"snapshot-refused", slog.LevelWarn, "the clients rejected the snapshot"}
}
