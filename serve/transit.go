package serve

import (
	"encoding/binary"
	"net"
	"sync"

	"xdspub/serve/admit"
	"xdspub/serve/memory"
)

// transit is a connection of a gRPC client, without TLS. The account of the connection holds the requests that have arrived and that
// no stream has taken yet: the library keeps up to a whole request for each stream before it decodes the request.
type transit struct {
	net.Conn
	client  admit.Client
	judge   *admit.Judge
	account *memory.Account

	// The goroutine that reads uses these.
	preface int     // bytes of the client's preface that are still to come
	head    [9]byte // of a frame
	known   int     // bytes of head
	left    int     // bytes of the payload that are still to come
	data    bool    // the payload is a part of requests

	mu            sync.Mutex
	streams       int // that are open
	bytes, frames int // that have arrived, and were not taken
	held          int // by the account
}

const (
	// prefaceLength is the length of the client's preface of HTTP/2.
	prefaceLength = 24
	// heldByFrame is what the library holds for a frame, beside its payload.
	heldByFrame = 128
	// unheld bytes in transit are paid for by what each connection holds anyway.
	unheld = 8 << 10
)

func newTransit(conn net.Conn, account *memory.Account, client admit.Client, judge *admit.Judge) *transit {
	return &transit{Conn: conn, account: account, client: client, judge: judge, preface: prefaceLength}
}

// Read reads from the connection.
func (c *transit) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if bytes, frames := c.scan(p[:n]); bytes+frames > 0 {
		if refused := c.arrives(bytes, frames); refused != nil {
			c.judge.Refused(c.client.Address, "memory", refused)
			return 0, refused // which ends the connection
		}
	}
	return n, err
}

// scan returns how many bytes of requests there are in what was read, and how many frames begin there.
// https://www.rfc-editor.org/rfc/rfc9113#name-frame-format
func (c *transit) scan(p []byte) (bytes, frames int) {
	skipped := min(c.preface, len(p))
	c.preface -= skipped
	for p = p[skipped:]; len(p) > 0; {
		if c.left > 0 {
			n := min(c.left, len(p))
			if c.data {
				bytes += n
			}
			c.left -= n
			p = p[n:]
			continue
		}
		n := copy(c.head[c.known:], p)
		p = p[n:]
		if c.known += n; c.known < len(c.head) {
			return bytes, frames
		}
		c.known = 0
		c.left = int(binary.BigEndian.Uint32(c.head[:4]) >> 8)
		if c.data = c.head[3] == 0; c.data {
			frames++
		}
	}
	return bytes, frames
}

// arrives takes down that parts of requests have arrived.
func (c *transit) arrives(bytes, frames int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bytes += bytes
	c.frames += frames
	return c.hold()
}

// taken takes down that a stream has taken a request of so many bytes from the library.
func (c *transit) taken(bytes int) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	bytes = min(bytes+5, c.bytes) // gRPC has a prefix of 5 bytes
	if bytes > 0 {
		c.frames -= c.frames * bytes / c.bytes
	}
	if c.bytes -= bytes; c.bytes == 0 {
		c.frames = 0
	}
	_ = c.hold() // which is less
}

// opens adds n to the number of open streams. Once no stream is open, the library has dropped all that has arrived.
func (c *transit) opens(n int) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.streams += n; c.streams == 0 {
		c.bytes, c.frames = 0, 0
		_ = c.hold()
	}
}

// hold sets what the account holds to what is in transit. The caller holds the lock.
func (c *transit) hold() error {
	now := max(0, c.bytes+c.frames*heldByFrame-unheld)
	err := c.account.Set(c.held, now)
	if err == nil {
		c.held = now
	}
	return err
}
