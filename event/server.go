package event

import (
	"log/slog"
	"time"
)

// CertificatesRead means that the files of --tls-cert, --tls-key or --client-ca have changed, and new
// connections use their new content. Open connections stay.
type CertificatesRead struct {
	Expires time.Time // the end of the validity of the server's certificate
}

func (CertificatesRead) kind() Kind {
	return Kind{"certificates-read", slog.LevelInfo, "the certificates have changed; new connections use them"}
}

// CertificatesUnreadable means that the files of --tls-cert, --tls-key or --client-ca have changed and are
// unreadable or don't fit together. The previous certificates stay in use until the files are good. The event
// is logged again if error changes.
//
// Do: remove the cause in error.
type CertificatesUnreadable struct {
	Error error // the cause
}

func (CertificatesUnreadable) kind() Kind {
	return Kind{"certificates-unreadable", slog.LevelWarn, "the certificates can't be read; the previous certificates stay in use"}
}

// CertificateExpiresSoon means that the certificate of --tls-cert, or the last valid certificate of
// --client-ca, expires soon: in the last 14 days before its end, or in the last sixth of its validity if that
// is shorter.
//
// Do: replace the certificate in the file. The server reads the file again by itself.
type CertificateExpiresSoon struct {
	File    string    // the file of --tls-cert or --client-ca
	Expires time.Time // the end of its validity
}

func (CertificateExpiresSoon) kind() Kind {
	return Kind{"certificate-expires-soon", slog.LevelWarn, "a certificate of the server expires soon"}
}

// CertificateExpired means that the certificate of --tls-cert, or the last valid certificate of --client-ca,
// has expired: new clients reject the server, or the server rejects new clients. Open connections stay.
//
// Do: replace the certificate in the file. The server reads the file again by itself.
type CertificateExpired struct {
	File    string    // the file of --tls-cert or --client-ca
	Expired time.Time // the end of its validity
}

func (CertificateExpired) kind() Kind {
	return Kind{"certificate-expired", slog.LevelError, "a certificate of the server has expired; clients can't connect by TLS"}
}

// AggregateStarted means that a client has connected with new values of the fields of --aggregate-by. xdspub asks the
// control plane with a node of these values, for this client and for each later client with equal values.
type AggregateStarted struct {
	Node string // the fields and their values
}

func (AggregateStarted) kind() Kind {
	return Kind{"aggregate-started", slog.LevelInfo, "clients with a new node: asking the control plane for them"}
}

// AggregateRetired means that no client has had these values of the fields of --aggregate-by for the time of --limit
// aggregate-idle. xdspub no longer asks the control plane with this node.
type AggregateRetired struct {
	Node string // the fields and their values
}

func (AggregateRetired) kind() Kind {
	return Kind{"aggregate-retired", slog.LevelInfo, "no client has this node any more"}
}

// AggregateDisplaced means that the server has ended an aggregate to start an aggregate for another client, because
// --limit aggregates allows no more. The other client has a certificate, uses the Unix socket, or owns fewer
// aggregates. The owner of an aggregate is the client that has started the aggregate. The streams of the ended
// aggregate end, and its clients try again.
//
// Do: look for clients with many nodes in status --serve. If the nodes are yours, raise --limit aggregates, or
// aggregate by fewer fields (--aggregate-by).
type AggregateDisplaced struct {
	Node    string // the fields and their values
	Clients int    // the number of streams and requests that the aggregate had
}

func (AggregateDisplaced) kind() Kind {
	return Kind{"aggregate-displaced", slog.LevelWarn, "an aggregate has lost its place to another client"}
}

// SocketLost means that somebody has removed the Unix socket of the server, and the server can't create
// the socket again, for example because another process listens at its path. Open connections stay; no new
// connections come. The server tries again every 2 seconds.
//
// Do: end the other process, or remove the file at the path.
type SocketLost struct {
	Address string // the path of the socket
	Error   error  // the cause
}

func (SocketLost) kind() Kind {
	return Kind{"socket-lost", slog.LevelError, "the Unix socket was removed; no client can connect to it"}
}

// SocketMadeAgain means that somebody has removed the Unix socket of the server, and the server has
// created the socket again. Open connections stay.
type SocketMadeAgain struct {
	Address string // the path of the socket
}

func (SocketMadeAgain) kind() Kind {
	return Kind{"socket-made-again", slog.LevelWarn, "the Unix socket was removed; the server has created it again"}
}

// ConnectionsFull means that the limit of connections is reached. A connection without a request gives way
// for a new connection; without such a connection, the new connection is closed. The event is logged again
// after a tenth of the connections was free.
//
// Do: look for a client that opens connections without end, or raise --limit connections.
type ConnectionsFull struct {
	Connections int // the limit of connections
}

func (ConnectionsFull) kind() Kind {
	return Kind{"connections-full", slog.LevelWarn, "the limit of connections is reached; new connections may be closed"}
}

// ClientMemoryFull means that clients hold all the memory of --max-client-memory, or nine tenths of it and a
// client asks for more. The server refuses the request, and ends the connection or the stream; other clients
// keep their resources. The event is logged again after a tenth of the memory was free.
//
// Do: look for a client that asks for too much (client-refused in the log, xdspub_client_memory_refusals_total
// in the metrics). If there is none, raise --max-client-memory.
type ClientMemoryFull struct {
	Bytes int64 // the limit in bytes
}

func (ClientMemoryFull) kind() Kind {
	return Kind{"client-memory-full", slog.LevelWarn, "clients hold all the memory of --max-client-memory; further requests are refused"}
}

// ClientRefused means that the server has ended the connection or the stream of a client: its certificate is
// not valid or does not allow it the node id that it claims, it asks for secrets over plain TCP, or asks for
// more than a limit allows. Other clients are not affected. The event is logged once in 10 minutes for each
// host and reason.
//
// Do: see error for the fault of the client. Correct its certificate or its bootstrap, or --allow-node or
// --limit here.
type ClientRefused struct {
	Client string // its address, empty for a Unix socket
	Error  string // why
}

func (ClientRefused) kind() Kind {
	return Kind{"client-refused", slog.LevelWarn, "a client was refused"}
}
