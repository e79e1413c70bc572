package memory

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// level takes bytes from an account, and returns the level of the refusal; "" for none.
func level(a *Account, bytes int) string {
	if err, refused := a.Take(bytes).(*Refusal); refused {
		return err.Level
	}
	return ""
}

// TestLevels checks the limit of each account, and that bytes count in the accounts above.
func TestLevels(t *testing.T) {
	refusals := make(map[string]int)
	full := 0
	b := New(3<<20, Options{Certificates: true, Full: func() { full++ }, Refused: func(level string) { refusals[level]++ }}) // 2 MiB of held bytes
	const kib = 1 << 10
	connection := b.Connect(Known, "a", nil)
	stream := connection.Open()
	for _, c := range []struct {
		account *Account
		bytes   int
		want    string
	}{
		{stream, 256 * kib, ""},
		{stream, 1, "stream"}, // has 1/partOfStream
		{connection.Open(), 256 * kib, ""},
		{connection, 1, "connection"}, // has 1/partOfConnection
		{b.Connect(Known, "a", nil), 320 * kib, ""},
		{b.Connect(Known, "a", nil), 1, "client"}, // has half of the bytes of its kind
		{b.Connect(Anonymous, "1.2.3.4", nil), 128 * kib, ""},
		{b.Connect(Anonymous, "1.2.3.4", nil), 1, "client"},
		{b.Connect(Anonymous, "1.2.3.5", nil), 64 * kib, ""},
		{b.Connect(Anonymous, "1.2.3.5", nil), 1, "client"}, // must leave as much to others as it has
		{b.Connect(Anonymous, "1.2.3.6", nil), 64 * kib, ""},
		{b.Connect(Anonymous, "1.2.3.7", nil), 9 * kib, "anonymous"}, // all of its kind have 1/partOfAnonymous
		{b.Connect(Known, "b", nil), 512 * kib, ""},
		{b.Connect(Known, "c", nil), 320 * kib, ""},
		{b.Connect(Known, "d", nil), 57 * kib, "known"},
	} {
		if is := level(c.account, c.bytes); is != c.want {
			t.Errorf("%d bytes of a %s of %q: %q, want %q", c.bytes, c.account.level, c.account.peer.name, is, c.want)
		}
	}
	if b.Held() != b.Limit()*15/16 || full != 1 || refusals["known"] != 1 || refusals["client"] != 3 {
		t.Error(b.Held(), b.Limit(), full, refusals)
	}
	connection.Close()
	stream.Give(1) // the connection is closed
	stream.Close()
	if want := b.Limit() * 11 / 16; b.Held() != want {
		t.Errorf("%d bytes are held, want %d", b.Held(), want)
	}
	if err := stream.Take(1); err == nil {
		t.Error("a stream takes bytes of a connection that is closed")
	}
}

// TestGiveWay checks that the client that holds the most loses connections in favor of a client that holds
// little, if no memory is left.
func TestGiveWay(t *testing.T) {
	b := New(48<<20, Options{Certificates: true}) // 26 MiB of held bytes are for clients with a certificate
	gone := make(map[string]int)
	connect := func(kind Kind, name string, bytes int) *Account {
		t.Helper()
		a := b.Connect(kind, name, func(r *Refusal) {
			gone[name]++
			if !strings.Contains(r.Error(), "this client holds the most") {
				t.Error(r)
			}
		})
		if err := a.Take(bytes); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return a
	}
	const mib = 1 << 20
	// Each attacker takes half of the remaining memory, until almost none is left.
	var attackers []*Account
	for i, held := range []int{7 * mib, 6 * mib, 7 * mib, 3 * mib, 1.5 * mib, 1.5*mib - 1} {
		attackers = append(attackers, connect(Known, string("aabcde"[i]), held))
	}
	honest := connect(Known, "honest", 64<<10)
	if gone["a"] != 1 || len(gone) != 1 {
		t.Error("closed", gone)
	}
	if attackers[0].Take(1) == nil && attackers[1].Take(1) == nil {
		t.Error("an account of a connection that was closed takes bytes")
	}
	// Wait of a client that holds little doesn't wait, although three quarters of the memory are held.
	connect(Known, "f", 6*mib)
	now := make(chan struct{})
	close(now)
	if err := honest.Open().Wait(now, 100<<10); err != nil {
		t.Error(err)
	}
	// A client that holds much is refused, and no other client loses connections.
	if is := level(b.Connect(Known, "g", nil), mib); is != "known" {
		t.Errorf("%q is full", is)
	}
	// Clients without a certificate take no memory from clients with a certificate.
	before := gone["a"] + gone["b"]
	for i := range 20 {
		connect(Anonymous, string(rune('A'+i)), 64<<10)
	}
	for range 20 {
		connect(Anonymous, "1.2.3.4", 64<<10)
	}
	connect(Anonymous, "1.2.3.5", 1.5*mib)
	connect(Anonymous, "1.2.3.6", 16<<10)
	if after := gone["a"] + gone["b"]; after != before || gone["1.2.3.4"]+gone["1.2.3.5"] != 1 {
		t.Error("closed", gone)
	}
}

// TestStranger checks that an address is a client, and that an IPv6 network is one client, because a client
// can use all its addresses.
func TestStranger(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.1:80": "192.0.2.1", "[::ffff:192.0.2.1]:80": "::ffff:192.0.2.1", "[2001:db8::1:2:3:4]:80": "2001:db8::/64", "[2001:db8:0:0:ffff::]:80": "2001:db8::/64",
		"[2001:db8:0:1::]:80": "2001:db8:0:1::/64", "[fe80::1%eth0]:80": "fe80::/64", "unknown": "unknown",
	} {
		if kind, is := Stranger(address); is != want || kind != Anonymous {
			t.Errorf("%s is %q", address, is)
		}
	}
}

// TestIdentify checks that identification moves bytes to the share of the client's kind.
func TestIdentify(t *testing.T) {
	b := New(3<<20, Options{Certificates: true})
	c := b.Connect(Anonymous, "1.2.3.4", nil)
	if err := c.Take(100 << 10); err != nil {
		t.Fatal(err)
	}
	if err := c.Identify(Known, "a"); err != nil {
		t.Fatal(err)
	}
	if b.kinds[Anonymous].held != 0 || b.kinds[Known].held != 100<<10 || len(b.peers) != 1 {
		t.Error(b.kinds[Anonymous].held, b.kinds[Known].held, len(b.peers))
	}
	c.Close()
	c.Close()
	if b.Held() != 0 || len(b.peers) != 0 {
		t.Error(b.Held(), len(b.peers))
	}
}

// TestRefusal checks that a refusal names the bytes, the limit and the remedy.
func TestRefusal(t *testing.T) {
	a := New(3<<20, Options{}).Connect(Known, "a", nil).Open()
	err := a.Take(300 << 10)
	for _, word := range []string{"this stream has 0.0 MiB of 0.4 MiB", "needs 0.4 MiB more", "raise --max-client-memory of the server (now 3 MiB)"} {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%v: lacks %q", err, word)
		}
	}
}

// TestWait checks that Wait takes bytes when another account gives them back, and returns an error when done
// is closed.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(3<<20, Options{}).Connect(Known, "a", nil)
		var streams sync.WaitGroup
		for range 20 {
			streams.Go(func() {
				s := c.Open()
				defer s.Close()
				if err := s.Wait(t.Context().Done(), 200<<10); err != nil { // two of this size fit
					t.Error(err)
				}
				time.Sleep(time.Second)
			})
		}
		began := time.Now()
		streams.Wait()
		if d := time.Since(began); d != 10*time.Second {
			t.Error("20 streams took", d)
		}
		if err := c.Take(500 << 10); err != nil {
			t.Fatal(err)
		}
		late := make(chan struct{})
		time.AfterFunc(time.Minute, func() { close(late) })
		if err := c.Open().Wait(late, 200<<10); err == nil || time.Since(began) != 70*time.Second {
			t.Error(err, time.Since(began))
		}
	})
}
