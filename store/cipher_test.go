package store

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"filippo.io/age"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"xdspub/event"
	"xdspub/source/load"
	"xdspub/tools/envoytest"
	"xdspub/xds"
)

// identity returns a new age identity, and its recipient.
func identity(t testing.TB) (secret, public string) {
	t.Helper()
	i, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return i.String(), i.Recipient().String()
}

// keyFile writes a file of age keys, and returns its path.
func keyFile(t testing.TB, lines ...string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "keys")
	writeKeys(t, path, lines...)
	return path
}

// writeKeys replaces a file of age keys.
func writeKeys(t testing.TB, path string, lines ...string) {
	t.Helper()
	text := "# created: 2026-01-01\n\n" + strings.Join(lines, "\n") + "\n"
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// withSecret returns a Snapshot with a secret.
func withSecret(text string) *xds.Snapshot {
	s := &tlsv3.Secret{Name: "named-canary", Type: &tlsv3.Secret_GenericSecret{GenericSecret: &tlsv3.GenericSecret{
		Secret: &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: text}},
	}}}
	return xds.NewSnapshot(append(many(3).All(), xds.ResourceOf(xds.Key{Type: xds.Secret, Name: s.Name}, s)))
}

// holds reports whether bytes hold a text, plain or in gzip.
func holds(data []byte, text string) bool {
	if bytes.Contains(data, []byte(text)) {
		return true
	}
	for {
		i := bytes.Index(data, []byte{0x1f, 0x8b, 8})
		if i < 0 {
			return false
		}
		data = data[i:]
		if z, err := gzip.NewReader(bytes.NewReader(data)); err == nil {
			plain, _ := io.ReadAll(io.LimitReader(z, 1<<20)) // an error at what follows the gzip
			if bytes.Contains(plain, []byte(text)) {
				return true
			}
		}
		data = data[1:]
	}
}

// dump returns all keys and values of the etcd, and then all bytes of its directory.
func (h *harness) dump() (all [][]byte) {
	h.Helper()
	r, err := h.client.etcd.Get(h.Context(), "\x00", clientv3.WithFromKey())
	if err != nil {
		h.Fatal(err)
	}
	for _, kv := range r.Kvs {
		var head Head
		_ = json.Unmarshal(kv.Value, &head) // other values have no change
		change, err := base64.StdEncoding.DecodeString(head.Change)
		if err != nil {
			h.Fatal(err)
		}
		all = append(all, kv.Key, kv.Value, change)
	}
	h.etcd.End(h)
	err = filepath.WalkDir(h.etcd.Dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		all = append(all, data)
		return err
	})
	if err != nil {
		h.Fatal(err)
	}
	return all
}

// TestEncrypted: neither the keys and values of an etcd nor its files have a secret, the name of a resource, or a hash
// of resources, while machines with an identity have the resources. The same search finds the secrets of a store
// without encryption.
func TestEncrypted(t *testing.T) {
	for _, encrypts := range []bool{true, false} {
		h := start(t)
		own, _ := identity(t)
		secret, public := identity(t)
		machine := ""
		if encrypts {
			h.options.AgeKeys, machine = keyFile(t, own, public), keyFile(t, secret)
		}
		snapshots := []*xds.Snapshot{withSecret("canary-one"), withSecret("canary-two")}
		writer, said := h.targetWriter(snapshots[0])
		w := h.begin(writer)
		o := h.options
		o.AgeKeys = machine
		f, _ := h.follower(FollowerOptions{Options: o, Machine: "m", Acknowledge: true})
		marks := []string{"canary-one", "canary-two", "named-canary", "cluster-00001"}
		for i, s := range append(snapshots, snapshots[0]) { // the last is a rollback
			h.publish(w, s)
			marks = append(marks, w.last.tree.ID(), s.ID())
			envoytest.Eventually(t, patience, "the machine has the snapshot", func() (bool, string) {
				c, err := f.Read(t.Context())
				return err == nil && resourcesOf(c).ID() == s.ID(), fmt.Sprint(i, err)
			})
		}
		c, err := f.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		f.Judged(load.Judgement{N: c.N, Accepted: true})
		h.untilMachines(map[string]Standing{"m": InSync})
		said.wait(t, func(e event.Event) bool {
			p, ok := e.(event.StorePublished)
			return ok && p.Snapshot == snapshots[1].ID() && (p.Name != "") == encrypts
		})
		found := make(map[string]bool)
		for _, data := range h.dump() {
			for _, mark := range marks {
				raw, err := hex.DecodeString(mark)
				if holds(data, mark) || err == nil && bytes.Contains(data, raw) {
					found[mark] = true
				}
			}
		}
		if encrypts && len(found) > 0 {
			t.Errorf("the etcd has %v", found)
		}
		if !encrypts && (!found["canary-one"] || !found["canary-two"] || !found["named-canary"] || !found[snapshots[0].ID()]) {
			t.Errorf("the search finds only %v in a store without encryption", found)
		}
	}
}

// TestEncryptedAgain: equal resources keep their names, and a later writer does not write them again.
func TestEncryptedAgain(t *testing.T) {
	h := start(t)
	own, _ := identity(t)
	h.options.AgeKeys = keyFile(t, own)
	writer, _ := h.targetWriter(many(3))
	w := h.begin(writer)
	h.publish(w, many(3))
	first := *w.head
	h.publish(w, many(4))
	h.publish(w, many(3))
	if w.head.Tree != first.Tree || w.head.Snapshot != first.Snapshot {
		t.Errorf("equal resources have the names %s, %s and %s, %s", w.head.Tree, w.head.Snapshot, first.Tree, first.Snapshot)
	}
	before, _ := h.keys("objects")
	if _, err := h.client.etcd.Revoke(t.Context(), h.writerLease()); err != nil {
		t.Fatal(err)
	}
	next, said := h.targetWriter(many(3))
	h.publish(h.begin(next), many(3))
	if after, _ := h.keys("objects"); after != before {
		t.Errorf("%d objects, and %d before", after, before)
	}
	if is := h.read(at{}); is.tree.Snapshot().ID() != many(3).ID() {
		t.Error("other resources")
	}
	if all := said.all(); len(all) != 1 { // store-term
		t.Errorf("%+v", all)
	}
}

// TestRotation: the machines get the new identity, then the writer gets its recipient, and then the machines lose the
// old identity. No machine misses a change, and no change for the old identity stays.
func TestRotation(t *testing.T) {
	h := start(t)
	old, _ := identity(t)
	young, _ := identity(t)
	h.options.AgeKeys = keyFile(t, old)
	writer, _ := h.targetWriter(many(2))
	stop := running(t, writer)
	h.untilHead(2)
	mark := h.headOf().Step.Cipher
	o, late := h.options, h.options
	o.AgeKeys, late.AgeKeys = keyFile(t, old), keyFile(t, old)
	f, failed := h.follower(FollowerOptions{Options: o})
	g, said := h.follower(FollowerOptions{Options: late})
	until(t, f, 2)
	until(t, g, 2)
	writeKeys(t, o.AgeKeys, old, young)
	writeKeys(t, h.options.AgeKeys, young)
	envoytest.Eventually(t, patience, "the writer writes all resources again", func() (bool, string) {
		head := h.headOf()
		return head.Step.Cipher != mark && head.Whole == head.Serial, fmt.Sprintf("%+v", head)
	})
	isOther := func(e event.Event) bool {
		failed, ok := e.(event.StoreFailed)
		return ok && strings.Contains(failed.Error.Error(), "is encrypted for others: add an identity to "+late.AgeKeys)
	}
	said.wait(t, isOther)
	if c, err := g.Read(t.Context()); err != nil || len(c.Files) != 2 {
		t.Errorf("the machine with the old identity has %d files, %v", len(c.Files), err)
	}
	writeKeys(t, o.AgeKeys, young)
	writeKeys(t, late.AgeKeys, young)
	writer.wanted.Store(many(3))
	writer.news <- struct{}{}
	until(t, f, 3)
	until(t, g, 3)
	stop()
	if n, _ := h.keys("steps"); n != 2 {
		t.Errorf("%d steps", n)
	}
	if n, _ := h.keys("objects"); n != 2 {
		t.Errorf("%d objects", n)
	}
	if all := failed.all(); len(all) > 0 {
		t.Errorf("the machine with both identities says %+v", all)
	}
}

// headOf returns the head.
func (h *harness) headOf() Head {
	h.Helper()
	head, _, _, err := reader{client: h.client, keys: h.options.Address.keys("")}.head(h.Context())
	if err != nil || head == nil {
		h.Fatal(head, err)
	}
	return *head
}

// TestPlainWriter: a writer without age keys does not replace encrypted resources by plain ones. A writer with age keys
// removes the plain resources of an earlier writer.
func TestPlainWriter(t *testing.T) {
	h := start(t)
	plain := "" // the hash of the plain resources
	publish := func(keys string) *events {
		h.options.AgeKeys = keys
		writer, said := h.targetWriter(many(2))
		stop := running(t, writer)
		defer stop()
		said.wait(t, func(e event.Event) bool {
			switch e.(type) {
			case event.StorePublished, event.StoreFailed:
				return true
			}
			return false
		})
		if plain != "" && keys != "" {
			envoytest.Eventually(t, patience, "the plain resources are gone", func() (bool, string) {
				kv, _, err := h.client.get(t.Context(), h.options.Address.keys("").chunk(plain, 0))
				return err == nil && kv == nil, fmt.Sprint(err)
			})
		}
		return said
	}
	own, _ := identity(t)
	keys := keyFile(t, own)
	publish("")
	plain = h.headOf().Step.Pack
	publish(keys)
	before := h.headOf()
	publish("").wait(t, func(e event.Event) bool {
		failed, ok := e.(event.StoreFailed)
		return ok && strings.Contains(failed.Error.Error(), "the head at /test/heads/- is encrypted, and this writer would write secrets in plain: set --encrypt-secrets")
	})
	if after := h.headOf(); after != before {
		t.Errorf("the head has moved: %+v", after)
	}
}

// TestCipherFaults: a follower refuses a change that is not encrypted for this machine, names the place and the reason,
// and keeps its resources. After the end of the fault, the follower goes on.
func TestCipherFaults(t *testing.T) {
	h := start(t)
	own, _ := identity(t)
	other, _ := identity(t)
	h.options.AgeKeys = keyFile(t, own)
	writer, _ := h.targetWriter(many(2))
	w := h.begin(writer)
	h.publish(w, many(2))
	tree := w.last.tree
	whole, err := tree.Pack(nil)
	if err != nil {
		t.Fatal(err)
	}
	encrypted, err := w.cipher.encrypt(whole)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, keys string
		data       []byte
		mark, want string
	}{
		{"no identity", "", encrypted, w.cipher.sum, "is encrypted: set --encrypt-secrets to a file with an age identity"},
		{"no identity, and no mark", "", encrypted, "", "is encrypted: set --encrypt-secrets to a file with an age identity"},
		{"another identity", keyFile(t, other), encrypted, w.cipher.sum, "is encrypted for others: add an identity to "},
		{"plain", h.options.AgeKeys, whole, "", "is not encrypted, and --encrypt-secrets is set here"},
		{"plain with a mark", h.options.AgeKeys, whole, w.cipher.sum, "is not encrypted, and --encrypt-secrets is set here"},
		{"cut", h.options.AgeKeys, encrypted[:len(encrypted)-1], w.cipher.sum, "is damaged: it can't be decrypted"},
		{"cut in the header", h.options.AgeKeys, encrypted[:30], w.cipher.sum, "is damaged: its header has more than 65536 bytes, or does not end"},
		{"changed", h.options.AgeKeys, append(encrypted[:len(encrypted)-1:len(encrypted)-1], encrypted[len(encrypted)-1]^1), w.cipher.sum, "is damaged: it can't be decrypted"},
		{"long header", h.options.AgeKeys, append([]byte(intro+strings.Repeat("-> a\n\n", maxHeader/6)), encrypted[len(intro):]...), w.cipher.sum, "is damaged: its header has more than 65536 bytes, or does not end"},
		{"missing file", filepath.Join(t.TempDir(), "none"), encrypted, w.cipher.sum, "the file of --encrypt-secrets can't be read: stat "},
	} {
		sum := sha256.Sum256(c.data)
		s := Step{Serial: 1, Tree: w.head.Tree, Pack: hex.EncodeToString(sum[:]), Bytes: int64(len(c.data)), Cipher: c.mark}
		if err := w.put(t.Context(), s.Pack, c.data); err != nil {
			t.Fatal(err)
		}
		r := reader{client: h.client, keys: w.keys, ageKeys: c.keys}
		_, err := r.apply(t.Context(), at{}, []Step{s})
		if err == nil || !strings.Contains(err.Error(), c.want) || !isFault(err) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	o := h.options
	o.AgeKeys = keyFile(t, own)
	f, said := h.follower(FollowerOptions{Options: o, Machine: "m", Acknowledge: true})
	until(t, f, 2)
	writeKeys(t, o.AgeKeys, own[:20])
	h.publish(w, many(3))
	said.wait(t, func(e event.Event) bool {
		failed, ok := e.(event.StoreFailed)
		return ok && strings.Contains(failed.Error.Error(), o.AgeKeys+":3: the line is neither an age identity (AGE-SECRET-KEY-…) nor an age recipient (age1…)")
	})
	if c, err := f.Read(t.Context()); err != nil || len(c.Files) != 2 {
		t.Errorf("with a wrong file: %d files, %v", len(c.Files), err)
	}
	if is := f.State(); !is.Connected || !strings.Contains(is.Error, o.AgeKeys) {
		t.Errorf("%+v", is)
	}
	r := h.untilMachines(map[string]Standing{"m": Broken})
	if m := r.Targets[0].Machines[0]; !strings.Contains(m.Message, o.AgeKeys+":3:") {
		t.Errorf("%+v", m)
	}
	writeKeys(t, o.AgeKeys, own)
	f.Judged(load.Judgement{N: until(t, f, 3).N, Accepted: true})
	h.untilMachines(map[string]Standing{"m": InSync})
}

// TestKeyFile: the error of an invalid file of age keys names the line, and does not quote the line.
func TestKeyFile(t *testing.T) {
	own, public := identity(t)
	for want, lines := range map[string][]string{
		"keys:4: the line is neither an age identity": {public, own[:len(own)-2]},
		"keys has no age identity: write a line":      {public},
		"the file has 70000 bytes, the limit is":      {strings.Repeat("x", 70000-24)},
	} {
		path := keyFile(t, lines...)
		_, err := readCipher(path)
		if _, is := errors.AsType[*CipherError](err); !is || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), own[15:30]) {
			t.Errorf("%s: %v", want, err)
		}
	}
	hybrid, err := age.GenerateHybridIdentity()
	if err != nil {
		t.Fatal(err)
	}
	c, err := readCipher(keyFile(t, own, hybrid.String()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.encrypt(nil); err == nil || !strings.Contains(err.Error(), "keys can't be used: incompatible recipients") {
		t.Error(err)
	}
	if _, err := readCipher("/dev/zero"); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Error(err)
	}
}

// TestPlainBase: a writer that encrypts takes no base of a rollout from a plain head, because anybody may have written
// the head. If the head has the snapshot of the writer, the writer encrypts the snapshot.
func TestPlainBase(t *testing.T) {
	h := start(t)
	plain := func(resources int) {
		writer, _ := h.targetWriter(many(resources))
		stop := running(t, writer)
		h.untilHead(resources)
		stop()
	}
	plain(7)
	own, _ := identity(t)
	h.options.AgeKeys = keyFile(t, own)
	f := h.fleet()
	f.writer.Published("", many(2))
	f.said.wait(t, func(e event.Event) bool {
		failed, ok := e.(event.StoreFailed)
		return ok && strings.Contains(failed.Error.Error(), "the head at /test/heads/- is not encrypted, and has other resources than this writer, so no rollout can begin")
	})
	if head := h.headOf(); head.Resources != 7 || head.Step.Cipher != "" || head.Rollout != nil {
		t.Errorf("%+v", head)
	}
	if _, err := h.client.etcd.Delete(t.Context(), h.options.Address.keys("").head()); err != nil {
		t.Fatal(err)
	}
	h.untilEncrypted(2)
	f.end()
	if _, err := h.client.etcd.Delete(t.Context(), h.options.Address.keys("").head()); err != nil {
		t.Fatal(err)
	}
	h.options.AgeKeys = ""
	plain(3)
	h.options.AgeKeys = keyFile(t, own)
	f = h.fleet()
	f.writer.Published("", many(3))
	h.untilEncrypted(3)
	envoytest.Eventually(t, patience, "the plain resources are removed", func() (bool, string) {
		r, err := h.client.etcd.Get(t.Context(), h.options.Address.keys("").objects(), clientv3.WithPrefix())
		return err == nil && !slices.ContainsFunc(r.Kvs, func(kv *mvccpb.KeyValue) bool { return !bytes.HasPrefix(kv.Value, []byte(intro)) }), fmt.Sprint(r, err)
	})
}

// untilEncrypted waits until the head is encrypted, and has a number of resources and no rollout.
func (h *harness) untilEncrypted(resources int) {
	h.Helper()
	h.untilHead(resources)
	envoytest.Eventually(h, patience, "the head is encrypted", func() (bool, string) {
		head := h.headOf()
		return head.Step.Cipher != "" && head.Resources == resources && head.Rollout == nil, fmt.Sprintf("%+v", head)
	})
}
