package serve

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
)

// Limits bound the cost of clients. A zero field means the value in DefaultLimits.
type Limits struct {
	// Connections is the largest number of open connections on all addresses, ConnectionRate the largest
	// number of connections that the server begins to serve per second.
	Connections, ConnectionRate int
	// Streams is the largest number of open streams, ConnectionStreams the largest number on one connection.
	// A client with more streams opens another connection.
	Streams, ConnectionStreams int
	// Message is the largest size of a request in bytes, Header the largest size of its headers.
	Message, Header int
	// Names is the largest number of names on a stream, in addition to the number of resources. NameLength is
	// the largest length of a name or a type URL in bytes.
	Names, NameLength int
	// Handshake bounds the time for TLS and the HTTP/2 preface, FirstRequest the time until the first request
	// on a stream, and Send the time in which a client must read a response.
	Handshake, FirstRequest, Send time.Duration
	// Idle is how long a connection without streams stays open.
	Idle time.Duration
	// Aggregates is the largest number of Aggregates; the own Aggregate of the Server does not count. AggregateIdle is
	// how long an Aggregate without clients stays.
	Aggregates    int
	AggregateIdle time.Duration
	// The server pings a client that was silent for Ping, and closes the connection without an answer within
	// PingAnswer. PingGap is the shortest interval at which a client may send pings.
	Ping, PingAnswer, PingGap time.Duration
}

// DefaultLimits fit ten thousand clients.
var DefaultLimits = Limits{
	Connections: 10_000, ConnectionRate: 1000,
	Streams: 20_000, ConnectionStreams: 1000,
	Message: 4 << 20, Header: 16 << 10,
	Names: 10_000, NameLength: 4096,
	Handshake: 10 * time.Second, FirstRequest: 30 * time.Second, Send: 2 * time.Minute,
	Idle:       5 * time.Minute,
	Aggregates: 100, AggregateIdle: 10 * time.Minute,
	Ping: 30 * time.Second, PingAnswer: 20 * time.Second, PingGap: 5 * time.Second,
}

// window is the flow-control window of a stream in bytes, the smallest that gRPC permits.
const window = 64 << 10

// options returns the limits that the gRPC library enforces.
func (l Limits) options() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.MaxConcurrentStreams(uint32(l.ConnectionStreams)),
		grpc.MaxRecvMsgSize(l.Message),
		// A static window doesn't grow for a fast client, and bounds the unread bytes of each stream.
		grpc.StaticStreamWindowSize(window), grpc.StaticConnWindowSize(16 * window),
		grpc.MaxHeaderListSize(uint32(l.Header)),
		grpc.ConnectionTimeout(l.Handshake),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: l.Idle, Time: l.Ping, Timeout: l.PingAnswer}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: l.PingGap, PermitWithoutStream: true}),
	}
}

// limit is a field of Limits with its name.
type limit struct {
	name  string
	count *int           // nil if time is set
	time  *time.Duration // nil if count is set
}

func (l *Limits) list() []limit {
	return []limit{
		{name: "connections", count: &l.Connections}, {name: "connection-rate", count: &l.ConnectionRate},
		{name: "streams", count: &l.Streams}, {name: "connection-streams", count: &l.ConnectionStreams},
		{name: "message-bytes", count: &l.Message}, {name: "header-bytes", count: &l.Header},
		{name: "names", count: &l.Names}, {name: "name-bytes", count: &l.NameLength},
		{name: "handshake", time: &l.Handshake}, {name: "first-request", time: &l.FirstRequest}, {name: "send", time: &l.Send},
		{name: "idle", time: &l.Idle},
		{name: "aggregates", count: &l.Aggregates}, {name: "aggregate-idle", time: &l.AggregateIdle},
		{name: "ping", time: &l.Ping}, {name: "ping-answer", time: &l.PingAnswer}, {name: "ping-gap", time: &l.PingGap},
	}
}

// LimitNames returns the names that Set accepts.
func LimitNames() (names []string) {
	for _, limit := range new(Limits).list() {
		names = append(names, limit.name)
	}
	return names
}

// Set sets a limit from NAME=VALUE. The value is a number from 1 on, or a duration above 0 such as 30s.
func (l *Limits) Set(text string) error {
	name, value, _ := strings.Cut(text, "=")
	for _, limit := range l.list() {
		if limit.name != name {
			continue
		}
		if limit.count != nil {
			n, err := strconv.ParseInt(value, 10, 31)
			if err != nil || n < 1 {
				return fmt.Errorf("write a number from 1 to %d", math.MaxInt32)
			}
			*limit.count = int(n)
			return nil
		}
		d, err := time.ParseDuration(value)
		if err != nil || d <= 0 {
			return errors.New("write a time above 0s, such as 30s")
		}
		*limit.time = d
		return nil
	}
	return fmt.Errorf("write NAME=VALUE; the names are %s", strings.Join(LimitNames(), ", "))
}

// orDefault returns the limits with zero fields set from DefaultLimits.
func (l Limits) orDefault() Limits {
	all := DefaultLimits
	defaults := all.list()
	for i, given := range l.list() {
		switch {
		case given.count != nil && *given.count == 0:
			*given.count = *defaults[i].count
		case given.time != nil && *given.time == 0:
			*given.time = *defaults[i].time
		}
	}
	return l
}
