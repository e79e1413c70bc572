package serve

import (
	"context"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"xdspub/internal/decoded"
	"xdspub/serve/memory"
	"xdspub/serve/turns"
	"xdspub/xds/xdstp"
)

// The memory in bytes that the parts of a stream hold, without the bytes that a client sends. e2e.TestAttack
// shows that these figures suffice.
const (
	// heldByStream covers the goroutines of a stream and the library's state.
	heldByStream = 24 << 10
	// heldByName covers the entries for a name in the maps of the library and of the cache.
	heldByName = 192
	// largestCall is the largest decoded request of a unary call, in bytes.
	largestCall = 1 << 20
	// smallest is the largest size in bytes of a response that no account holds.
	smallest = 1 << 10
)

// heldByNames returns the bytes that the names of a subscription hold.
func heldByNames(names map[string]struct{}) (bytes int) {
	for name := range names {
		bytes += heldByName + len(name)
		if xdstp.Is(name) { // the cache keeps the client's spelling, too
			bytes += len(name)
		}
	}
	return bytes
}

// incoming is a message that a stream receives. The account holds the memory of the message from before its
// decoding until the stream receives the next message.
type incoming struct {
	message any
	account *memory.Account
	transit *transit
	turns   *turns.Client
	ctx     context.Context // of the stream
	held    int             // bytes that the account holds for the message
	refused error           // of the account
}

// decode decodes a message. decode first waits for a turn, and takes the memory of the message from the
// account.
func (in *incoming) decode(data []byte) error {
	defer in.transit.received(len(data))
	turn, err := in.turns.Take(in.ctx)
	if err != nil {
		return err
	}
	defer turn.Give()
	m := in.message.(proto.Message)
	held := decoded.Size(data, m.ProtoReflect().Descriptor())
	if in.refused = in.account.Take(held); in.refused != nil {
		return in.refused
	}
	in.held = held
	return proto.Unmarshal(data, m)
}

// outgoing is a message that a stream sends. The account of the connection holds its bytes from before the
// message is encoded until the library has written the message.
type outgoing struct {
	own     proto.Message // the message without shared
	shared  []byte
	size    int             // of own, in bytes
	account *memory.Account // of the connection
	held    int             // bytes that the account holds, at most Account.Half
}

// newOutgoing returns a message for a connection with an account. The account holds no bytes of the message
// yet.
func newOutgoing(m proto.Message, account *memory.Account) *outgoing {
	out := &outgoing{account: account}
	out.own, out.shared = own(m)
	out.size = proto.Size(out.own)
	return out
}

// sentBuffers gives back the bytes of a response once the library has written it.
type sentBuffers struct {
	mem.BufferPool
	account *memory.Account
	bytes   int
}

// Put is called once the library has written a response, or its stream has ended.
func (s sentBuffers) Put(buffer *[]byte) {
	s.account.Give(s.bytes)
	s.BufferPool.Put(buffer)
}

// encode encodes the message without shared. The account holds the buffer until the buffer is freed.
func (out *outgoing) encode() (mem.Buffer, error) {
	if out.size <= smallest {
		data, err := proto.Marshal(out.own)
		return mem.SliceBuffer(data), err
	}
	pool := mem.DefaultBufferPool()
	buffer := pool.Get(out.size)
	data, err := proto.MarshalOptions{UseCachedSize: true}.MarshalAppend((*buffer)[:0], out.own)
	if err != nil {
		pool.Put(buffer)
		out.account.Give(out.held)
		return nil, err
	}
	*buffer = data
	return mem.NewBuffer(buffer, sentBuffers{pool, out.account, out.held}), nil
}

// heldByRequest covers the goroutine of an HTTP request and the library's state, without headers and body.
const heldByRequest = 16 << 10

// heldByHeaders returns the bytes that the headers of a stream or request hold.
func heldByHeaders(headers map[string][]string) (bytes int) {
	for name, values := range headers {
		bytes += 64 + len(name)
		for _, value := range values {
			bytes += 16 + len(value)
		}
	}
	return bytes
}
