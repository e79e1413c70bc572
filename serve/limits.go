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

// Limits bound what clients cost. A field that is zero has the value of DefaultLimits.
type Limits struct {
	// Connections is how many there are at a time, of all addresses, ConnectionRate how many new
	// ones in a second.
	Connections, ConnectionRate int
	// Streams is how many there are at a time, ConnectionStreams how many on one connection: a
	// client that wants more of them opens another connection.
	Streams, ConnectionStreams int
	// Message is the size of a request in bytes, Header that of its headers.
	Message, Header int
	// Names is how many names a stream may ask for, beside as many as there are resources;
	// NameLength is how long each may be, in bytes.
	Names, NameLength int
	// Handshake is how long a client may take for TLS and the preface of HTTP/2, FirstRequest
	// until it asks for something on a stream, Send to take in a response.
	Handshake, FirstRequest, Send time.Duration
	// Idle is how long a connection without a stream stays open.
	Idle time.Duration
	// Ping is after how long a silent client is asked for a sign of life, PingAnswer how long it
	// has for that. PingGap is how often a client may ask itself.
	Ping, PingAnswer, PingGap time.Duration
}

// DefaultLimits are for ten thousand clients.
var DefaultLimits = Limits{
	Connections: 10_000, ConnectionRate: 1000,
	Streams: 20_000, ConnectionStreams: 1000,
	Message: 4 << 20, Header: 16 << 10,
	Names: 10_000, NameLength: 4096,
	Handshake: 10 * time.Second, FirstRequest: 30 * time.Second, Send: 2 * time.Minute,
	Idle: 5 * time.Minute,
	Ping: 30 * time.Second, PingAnswer: 20 * time.Second, PingGap: 5 * time.Second,
}

// window is how many bytes of requests a client may send on a stream that the server has not read, the least of gRPC.
const window = 64 << 10

// options returns the limits that the gRPC library keeps.
func (l Limits) options() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.MaxConcurrentStreams(uint32(l.ConnectionStreams)),
		grpc.MaxRecvMsgSize(l.Message),
		// A static window is not made larger for a client that sends fast. What a stream does not read stays below it.
		grpc.StaticStreamWindowSize(window), grpc.StaticConnWindowSize(16 * window),
		grpc.MaxHeaderListSize(uint32(l.Header)),
		grpc.ConnectionTimeout(l.Handshake),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: l.Idle, Time: l.Ping, Timeout: l.PingAnswer}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: l.PingGap, PermitWithoutStream: true}),
	}
}

// limit is one of Limits, by a name.
type limit struct {
	name  string
	count *int           // or
	time  *time.Duration // one of them
}

func (l *Limits) list() []limit {
	return []limit{
		{name: "connections", count: &l.Connections}, {name: "connection-rate", count: &l.ConnectionRate},
		{name: "streams", count: &l.Streams}, {name: "connection-streams", count: &l.ConnectionStreams},
		{name: "message-bytes", count: &l.Message}, {name: "header-bytes", count: &l.Header},
		{name: "names", count: &l.Names}, {name: "name-bytes", count: &l.NameLength},
		{name: "handshake", time: &l.Handshake}, {name: "first-request", time: &l.FirstRequest}, {name: "send", time: &l.Send},
		{name: "idle", time: &l.Idle},
		{name: "ping", time: &l.Ping}, {name: "ping-answer", time: &l.PingAnswer}, {name: "ping-gap", time: &l.PingGap},
	}
}

// LimitNames returns the names that Set takes.
func LimitNames() (names []string) {
	for _, limit := range new(Limits).list() {
		names = append(names, limit.name)
	}
	return names
}

// Set sets the limit that is written as NAME=VALUE. A time is written as 30s.
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

// orDefault returns the limits with those that are not given.
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
