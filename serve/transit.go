package serve

import (
	"encoding/binary"
	"net"
	"sync"

	"xdspub/serve/admit"
	"xdspub/serve/memory"
)

// transit is the connection of a gRPC client, after decryption. The account of the connection holds the
// request bytes that have arrived and that no stream has received yet: the library buffers up to a whole
// request per stream before decoding.
type transit struct {
	net.Conn
	crashes crashes
	client  admit.Client
	judge   *admit.Judge
	account *memory.Account

	// Used only by the goroutine that reads.
	preface int     // bytes of the client's preface still to come
	head    [9]byte // of the current frame
	known   int     // number of bytes in head
	left    int     // bytes of the payload still to come
	data    bool    // the payload is part of a request

	mu            sync.Mutex
	streams       int // open streams
	bytes, frames int // arrived and not yet received by a stream
	held          int // bytes that the account holds
}

const (
	// prefaceLength is the length of the client's HTTP/2 preface.
	prefaceLength = 24
	// heldByFrame is the library's memory for a frame, without its payload.
	heldByFrame = 128
	// unheld is the number of bytes in transit that the fixed charge of a connection covers.
	unheld = 8 << 10
)

func newTransit(conn net.Conn, account *memory.Account, client admit.Client, judge *admit.Judge, c crashes) *transit {
	return &transit{Conn: conn, crashes: c, account: account, client: client, judge: judge, preface: prefaceLength}
}

// Read reads from the connection, and charges the request bytes that arrive. Read fails if the account
// refuses the bytes.
func (c *transit) Read(p []byte) (n int, err error) {
	defer c.crashes.status("reading a gRPC connection", &err) // the library calls Read on a goroutine of its own
	n, err = c.Conn.Read(p)
	if bytes, frames := c.scan(p[:n]); bytes+frames > 0 {
		if refused := c.arrived(bytes, frames); refused != nil {
			c.judge.Refused(c.client.Address, "memory", refused)
			return 0, refused // ends the connection
		}
	}
	return n, err
}

// scan returns the number of request bytes in p and the number of DATA frames that begin in p.
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

// arrived counts request bytes and frames that have arrived, and charges their memory. The error is a gRPC
// status.
func (c *transit) arrived(bytes, frames int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bytes += bytes
	c.frames += frames
	return c.updateCharge()
}

// received gives back the charge for a request of this size, in bytes, after a stream has received the
// request. received of a nil transit does nothing.
func (c *transit) received(bytes int) {
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
	_ = c.updateCharge() // can't fail: the charge shrinks
}

// addStreams adds n to the number of open streams. If no stream is open then, addStreams gives back the whole
// charge, because the library has dropped all received bytes. addStreams of a nil transit does nothing.
func (c *transit) addStreams(n int) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.streams += n; c.streams == 0 {
		c.bytes, c.frames = 0, 0
		_ = c.updateCharge()
	}
}

// updateCharge sets the charge to the bytes in transit beyond unheld. The caller holds mu.
func (c *transit) updateCharge() error {
	now := max(0, c.bytes+c.frames*heldByFrame-unheld)
	err := c.account.Set(c.held, now)
	if err == nil {
		c.held = now
	}
	return err
}
