package csds_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"

	"xdspub/diag"
	"xdspub/serve/csds"
)

// headers encodes pairs of names and values.
func headers(pairs ...string) []byte {
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	for i := 0; i < len(pairs); i += 2 {
		_ = e.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]})
	}
	return b.Bytes()
}

// reads reads frames up to the request, and writes the headers of the response.
func reads(f *http2.Framer, more ...string) error {
	if err := f.WriteSettings(); err != nil {
		return err
	}
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return err
		}
		if _, ok := frame.(*http2.DataFrame); ok {
			fields := headers(append([]string{":status", "200", "content-type", "application/grpc"}, more...)...)
			return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndHeaders: true, BlockFragment: fields})
		}
	}
}

// again calls write until write fails.
func again(write func() error) {
	for write() == nil {
	}
}

// TestHostileServers checks that Ask of a hostile server returns a printable error, and doesn't wait for a
// server that doesn't read.
func TestHostileServers(t *testing.T) {
	for name, c := range map[string]struct {
		serve func(net.Conn, *http2.Framer)
		want  string
	}{
		"silence": {func(c net.Conn, _ *http2.Framer) { _, _ = io.Copy(io.Discard, c) }, "the server has not answered"},
		"one byte after the other": {func(c net.Conn, f *http2.Framer) {
			if reads(f) == nil && f.WriteData(1, false, []byte{0, 0, 1, 0, 0}) == nil {
				again(func() error { time.Sleep(time.Millisecond * 10); return f.WriteData(1, false, []byte{10}) })
			}
		}, "the server has not answered"},
		"settings without end, and no reader": {func(_ net.Conn, f *http2.Framer) { again(func() error { return f.WriteSettings() }) }, "the server has not answered"},
		"frames without end": {func(_ net.Conn, f *http2.Framer) {
			if reads(f) == nil {
				again(func() error { return f.WriteRawFrame(0x55, 0, 0, make([]byte, 16000)) })
			}
		}, "the server has not answered"},
		"a response of 300 MiB": {func(c net.Conn, f *http2.Framer) {
			if reads(f) == nil && f.WriteData(1, false, []byte{0, 0x12, 0xc0, 0, 0}) == nil {
				_, _ = io.Copy(io.Discard, c)
			}
		}, "received message larger than max (314572800 vs. 268435456)"},
		"gzip": {func(c net.Conn, f *http2.Framer) {
			if reads(f, "grpc-encoding", "gzip") == nil && f.WriteData(1, false, []byte{1, 0, 0, 0, 1, 0}) == nil {
				_, _ = io.Copy(io.Discard, c)
			}
		}, `Decompressor is not installed for grpc-encoding "gzip"`},
		"words for a terminal": {func(c net.Conn, f *http2.Framer) {
			says := headers("grpc-status", "13", "grpc-message", "no%1b[2J%0a"+strings.Repeat("x", 8000))
			if reads(f) == nil && f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndHeaders: true, EndStream: true, BlockFragment: says}) == nil {
				_, _ = io.Copy(io.Discard, c)
			}
		}, "no\uFFFD[2J\uFFFDxxx"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			socket := filepath.Join(t.TempDir(), "s") // buffers less than TCP
			l, err := net.Listen("unix", socket)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { l.Close() })
			go func() {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				defer conn.Close()
				if _, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface))); err == nil {
					c.serve(conn, http2.NewFramer(conn, conn))
				}
			}()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			began := time.Now()
			_, err = csds.Ask(ctx, "unix:"+socket, nil)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.ContainsAny(err.Error(), "\x1b\n") || len(err.Error()) > diag.MaxText+100 {
				t.Errorf("%.300q", err)
			}
			if took := time.Since(began); took > 5*time.Second { // the library alone waits 6s
				t.Errorf("took %v", took)
			}
		})
	}
}

// raw is a codec of bytes.
type raw struct{}

func (raw) Name() string { return "proto" }
func (raw) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}
func (raw) Unmarshal(mem.BufferSlice, any) error { return nil }

// TestAnswerBomb checks that Ask refuses an answer of 16 MiB that would take 2 GiB of memory after decoding.
func TestAnswerBomb(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	clients := bytes.Repeat([]byte{0x0a, 0}, 8<<20) // eight million empty messages
	server := grpc.NewServer(grpc.ForceServerCodecV2(raw{}), grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error { return s.SendMsg(clients) }))
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	_, err = csds.Ask(t.Context(), "unix:"+socket, nil)
	if want := "would take 2064 MiB of memory, and 1024 MiB are allowed"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}
