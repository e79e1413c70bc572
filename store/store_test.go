package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"xdspub/event"
	"xdspub/render/history"
	"xdspub/tools/envoytest"
	"xdspub/tools/etcdtest"
	"xdspub/xds"
)

const patience = time.Minute // ends a hang

// clusters returns a Snapshot of clusters that are named by a number, with a timeout for each.
func clusters(timeouts ...int) *xds.Snapshot {
	var list []*xds.Resource
	for i, seconds := range timeouts {
		name := fmt.Sprintf("cluster-%05d", i)
		list = append(list, xds.ResourceOf(xds.Key{Type: xds.Cluster, Name: name},
			&clusterv3.Cluster{Name: name, ConnectTimeout: durationpb.New(time.Duration(seconds) * time.Second)}))
	}
	return xds.NewSnapshot(list)
}

// many returns a Snapshot of n clusters.
func many(n int) *xds.Snapshot { return clusters(make([]int, n)...) }

// edited returns a Snapshot with another timeout of the first clusters.
func edited(s *xds.Snapshot, first, seconds int) *xds.Snapshot {
	list := append([]*xds.Resource(nil), s.All()...)
	for i := range first {
		c := proto.CloneOf(list[i].Message().(*clusterv3.Cluster))
		c.ConnectTimeout = durationpb.New(time.Duration(seconds) * time.Second)
		list[i] = xds.ResourceOf(list[i].Key, c)
	}
	return xds.NewSnapshot(list)
}

// harness is a store of a test.
type harness struct {
	*testing.T
	etcd    *etcdtest.Server
	options Options
	client  *client
}

func start(t *testing.T, options ...string) *harness {
	t.Helper()
	s := etcdtest.Start(t, options...)
	a, err := ParseAddress(Scheme + s.Endpoint + "/test")
	if err != nil {
		t.Fatal(err)
	}
	h := &harness{T: t, etcd: s, options: Options{Address: a}}
	if h.client, err = connect(t.Context(), h.options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.client.close)
	return h
}

// targetWriter returns a targetWriter that publishes a Snapshot, and its events.
func (h *harness) targetWriter(s *xds.Snapshot) (*targetWriter, *events) {
	e := new(events)
	o := WriterOptions{Options: h.options, By: "me@here"}
	t := &targetWriter{
		options: o, keys: h.options.Address.keys(""), log: event.New(discard{}, e.add), news: make(chan struct{}, 1), writer: NewWriter(o), now: time.Now,
	}
	t.wanted.Store(s)
	return t, e
}

// begin returns a term that has begun, and ends with the test.
func (h *harness) begin(s *targetWriter) *term {
	h.Helper()
	ctx, cancel := context.WithCancel(h.Context())
	h.Cleanup(cancel)
	lease, alive, err := h.client.lease(ctx, leaseTime)
	if err != nil {
		h.Fatal(err)
	}
	go func() {
		for range alive {
		}
	}()
	t := s.newTerm(h.client)
	if err := t.begin(ctx, lease); err != nil {
		h.Fatal(err)
	}
	return t
}

// read returns the resources of the head, for a reader that has what was says.
func (h *harness) read(was at) at {
	h.Helper()
	r := reader{client: h.client, keys: h.options.Address.keys(""), ageKeys: h.options.AgeKeys}
	head, _, _, err := r.head(h.Context())
	if err != nil || head == nil {
		h.Fatal(head, err)
	}
	tree, err := r.advance(h.Context(), was, *head)
	if err != nil {
		h.Fatal(err)
	}
	return at{head.Serial, head.Step.Serial, tree, head.Tree}
}

func (h *harness) publish(t *term, s *xds.Snapshot) {
	h.Helper()
	if err := t.publish(h.Context(), s); err != nil {
		h.Fatal(err)
	}
}

// keys returns the keys of a kind, with the bytes of their values.
func (h *harness) keys(kind string) (n int, bytes int64) {
	h.Helper()
	r, err := h.client.etcd.Get(h.Context(), h.options.Address.Prefix+"/"+kind+"/", clientv3.WithPrefix())
	if err != nil {
		h.Fatal(err)
	}
	for _, kv := range r.Kvs {
		bytes += int64(len(kv.Value))
	}
	return len(r.Kvs), bytes
}

// TestSteps: a reader of any age reads what was published, and an edit costs what its resources cost.
func TestSteps(t *testing.T) {
	h := start(t)
	s := many(2000)
	writer, _ := h.targetWriter(s)
	w := h.begin(writer)
	h.publish(w, s)
	fresh, old := h.read(at{}), h.read(at{})
	_, whole := h.keys("objects")
	for i := range 20 {
		before := w.head.Step
		s = edited(s, 200, i+1)
		h.publish(w, s)
		own := 0
		for _, r := range s.All()[:200] {
			canonical, err := r.Canonical()
			if err != nil {
				t.Fatal(err)
			}
			own += len(canonical)
		}
		if step := w.head.Step; step.Base != before.Tree || step.Bytes > int64(own)*12/10 {
			t.Errorf("step %d: %d bytes for an edit of %d, base %.8s, was %.8s", i, step.Bytes, own, step.Base, before.Tree)
		}
		if fresh = h.read(fresh); fresh.tree.Snapshot().ID() != s.ID() {
			t.Fatalf("step %d: a reader has other resources", i)
		}
	}
	for _, was := range []at{{}, old} {
		if is := h.read(was); is.tree.Snapshot().ID() != s.ID() || is.tree.ID() != w.last.tree.ID() {
			t.Error("an old reader has other resources")
		}
	}
	if n, bytes := h.keys("objects"); n != 21 || whole == 0 {
		t.Errorf("%d objects, %d bytes, the first %d", n, bytes, whole)
	}
	h.publish(w, edited(s, 200, 19)) // as before the last edit
	h.publish(w, s)
	h.publish(w, edited(s, 200, 19))
	if n, _ := h.keys("objects"); n != 22 { // the second edit to the same state stores nothing
		t.Errorf("%d objects after edits back and forth", n)
	}
}

// TestLarge: a change that is larger than a request of etcd goes in chunks.
func TestLarge(t *testing.T) {
	h := start(t)
	var list []*xds.Resource
	for i := range 3 {
		name := fmt.Sprint("c", i)
		text := make([]byte, 1<<20)
		sum := sha256.Sum256([]byte(name))
		for n := 0; n < len(text); n += copy(text[n:], hex.EncodeToString(sum[:])) { // can't be compressed well
			sum = sha256.Sum256(sum[:])
		}
		list = append(list, xds.ResourceOf(xds.Key{Type: xds.Cluster, Name: name}, &clusterv3.Cluster{Name: name, AltStatName: string(text)}))
	}
	s := xds.NewSnapshot(list)
	writer, _ := h.targetWriter(s)
	w := h.begin(writer)
	h.publish(w, s)
	if n, bytes := h.keys("objects"); n < 2 || bytes > 2<<20 {
		t.Errorf("%d chunks, %d bytes", n, bytes)
	}
	if is := h.read(at{}); is.tree.Snapshot().ID() != s.ID() {
		t.Error("other resources")
	}
}

// TestEmpty: a snapshot without resources has a head, too.
func TestEmpty(t *testing.T) {
	h := start(t)
	writer, _ := h.targetWriter(many(0))
	w := h.begin(writer)
	for _, n := range []int{0, 3, 0} {
		h.publish(w, many(n))
		if is := h.read(at{}); is.tree.Snapshot().Len() != n {
			t.Errorf("%d resources, not %d", is.tree.Snapshot().Len(), n)
		}
	}
}

// TestPausedWriter: a writer whose lease is over can't move the head, put an object or remove one, whatever the other
// writer has done meanwhile.
func TestPausedWriter(t *testing.T) {
	h := start(t)
	first, _ := h.targetWriter(many(3))
	paused := h.begin(first)
	h.publish(paused, many(3))
	lease := h.writerLease()
	if _, err := h.client.etcd.Revoke(t.Context(), lease); err != nil { // as the end of the lease does
		t.Fatal(err)
	}
	if err := paused.publish(t.Context(), many(4)); err != errLost {
		t.Errorf("without another writer: %v", err)
	}
	second, _ := h.targetWriter(many(5))
	other := h.begin(second)
	if err := paused.publish(t.Context(), many(6)); err != errLost {
		t.Errorf("before the other writer has published: %v", err)
	}
	h.publish(other, many(5))
	before, _ := h.keys("objects")
	if err := paused.publish(t.Context(), many(7)); err != errLost {
		t.Errorf("after the other writer has published: %v", err)
	}
	if err := paused.remove(t.Context(), []string{other.keys.chunk(other.head.Step.Pack, 0)}); err != errLost {
		t.Errorf("removing an object: %v", err)
	}
	if after, _ := h.keys("objects"); after != before {
		t.Errorf("%d objects, and %d before", after, before)
	}
	if is := h.read(at{}); is.tree.Snapshot().Len() != 5 {
		t.Errorf("%d resources", is.tree.Snapshot().Len())
	}
}

// TestForeignHead: a writer without a new snapshot notices that another process has replaced or removed the head, and
// writes the head again.
func TestForeignHead(t *testing.T) {
	h := start(t)
	s, said := h.targetWriter(many(2))
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		s.run(ctx)
		close(ended)
	}()
	defer func() { end(); <-ended }()
	said.wait(t, func(e event.Event) bool { _, ok := e.(event.StorePublished); return ok })
	key := s.keys.head()
	kv, _, err := h.client.get(t.Context(), key)
	if err != nil || kv == nil {
		t.Fatal(kv, err)
	}
	for _, change := range []clientv3.Op{clientv3.OpDelete(key), clientv3.OpPut(key, string(kv.Value))} {
		if _, err := h.client.etcd.Do(t.Context(), change); err != nil {
			t.Fatal(err)
		}
		envoytest.Eventually(t, patience, "a new head", func() (bool, string) {
			is, _, err := h.client.get(t.Context(), key)
			return err == nil && is != nil && string(is.Value) != string(kv.Value), fmt.Sprint(is, err)
		})
	}
}

// writerLease returns the lease of the present writer.
func (h *harness) writerLease() clientv3.LeaseID {
	h.Helper()
	kv, _, err := h.client.get(h.Context(), h.options.Address.keys("").writer())
	if err != nil || kv == nil {
		h.Fatal(kv, err)
	}
	return clientv3.LeaseID(kv.Lease)
}

// TestSameLease: a second writer with the lease of the first waits, even though both keep the lease alive.
func TestSameLease(t *testing.T) {
	h := start(t)
	first, _ := h.targetWriter(many(1))
	h.publish(h.begin(first), many(1))
	second, said := h.targetWriter(many(2))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		w := second.newTerm(h.client)
		done <- w.begin(ctx, h.writerLease())
	}()
	said.wait(t, func(e event.Event) bool {
		other, ok := e.(event.StoreHasWriter)
		return ok && other.Writer == "me@here"
	})
	cancel()
	if err := <-done; err == nil {
		t.Error("two writers")
	}
	if is := h.read(at{}); is.tree.Snapshot().Len() != 1 {
		t.Errorf("%d resources", is.tree.Snapshot().Len())
	}
}

// TestTakeover: a waiting writer takes over when the first ends, and gives the head a later serial.
func TestTakeover(t *testing.T) {
	h := start(t)
	first, _ := h.targetWriter(many(2))
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		first.run(ctx)
		close(ended)
	}()
	serial := h.untilHead(2)
	second, said := h.targetWriter(many(2))
	later, stop := context.WithCancel(t.Context())
	defer stop()
	go second.run(later)
	said.wait(t, func(e event.Event) bool { _, waits := e.(event.StoreHasWriter); return waits })
	if is := second.state(); is.Writes || is.Writer != "me@here" || is.Snapshot != "" || is.Error != "" {
		t.Errorf("the waiting writer: %+v", is)
	}
	end()
	<-ended
	if is := first.state(); is.Writes || is.Snapshot != many(2).ID() {
		t.Errorf("the writer that has ended: %+v", is)
	}
	said.wait(t, func(e event.Event) bool { _, began := e.(event.StoreTerm); return began })
	envoytest.Eventually(t, patience, "the head has a later serial", func() (bool, string) {
		is := h.read(at{})
		return is.serial > serial && is.tree.Snapshot().Len() == 2, fmt.Sprint(is.serial)
	})
	if n, _ := h.keys("objects"); n != 1 {
		t.Errorf("%d objects: the second writer has written the same resources again", n)
	}
	envoytest.Eventually(t, patience, "the second writer shows what it has published", func() (bool, string) {
		is := second.state()
		return is.Writes && is.Writer == "" && is.Snapshot == many(2).ID(), fmt.Sprintf("%+v", is)
	})
}

// untilHead waits until the head has a number of resources, and returns the serial.
func (h *harness) untilHead(resources int) (serial int64) {
	h.Helper()
	r := reader{client: h.client, keys: h.options.Address.keys("")}
	envoytest.Eventually(h, patience, "the head moves", func() (bool, string) {
		head, _, _, err := r.head(h.Context())
		if head == nil {
			return false, fmt.Sprint(err)
		}
		serial = head.Serial
		return head.Resources == resources, fmt.Sprint(*head)
	})
	return serial
}

// TestWhole: a long chain of steps ends with a step with all resources; what only older steps need is removed, and
// readers of any age go on.
func TestWhole(t *testing.T) {
	h := start(t)
	s := many(4)
	writer, _ := h.targetWriter(s)
	w := h.begin(writer)
	var readers []at
	wholes := 0
	for i := range 150 {
		s = edited(s, 4, i+1)
		last := w.head
		h.publish(w, s)
		if last == nil || w.head.Whole != last.Whole {
			wholes++
		}
		if i%25 == 0 {
			readers = append(readers, h.read(at{}))
		}
	}
	if wholes < 5 {
		t.Errorf("%d steps with all resources", wholes)
	}
	if n, _ := h.keys("steps"); n > lagging+20 {
		t.Errorf("%d steps stay", n)
	}
	for i, was := range append(readers, at{}) {
		if is := h.read(was); is.tree.Snapshot().ID() != s.ID() {
			t.Errorf("reader %d has other resources", i)
		}
	}
}

// TestForeign: a prefix that holds something else is said with its key, and is not overwritten.
func TestForeign(t *testing.T) {
	h := start(t)
	key := h.options.Address.keys("").head()
	for value, want := range map[string]string{
		"hello":                             `the key /test/heads/- holds something else: "hello"; choose another prefix, or remove the key`,
		`{"layout":7,"serial":1,"whole":1}`: "layout 7, and this program knows layout 1",
		`{"layout":1,"serial":1,"whole":1}`: "a head with invalid fields",
		strings.Repeat(" ", maxHead+1):      "16385 bytes, and 16384 are allowed",
	} {
		if _, err := h.client.etcd.Put(t.Context(), key, value); err != nil {
			t.Fatal(err)
		}
		writer, said := h.targetWriter(many(1))
		stop := running(t, writer)
		said.wait(t, func(e event.Event) bool {
			failed, ok := e.(event.StoreFailed)
			return ok && strings.Contains(failed.Error.Error(), want)
		})
		stop()
		if kv, _, err := h.client.get(t.Context(), key); err != nil || string(kv.Value) != value {
			t.Errorf("the key was overwritten: %v", err)
		}
	}
}

// TestDamage: bytes with a wrong hash, and bytes that are missing, are said with their key. If only steps are damaged,
// the last step with all resources helps; if that is damaged, a new process of the writer writes all resources again.
func TestDamage(t *testing.T) {
	h := start(t)
	s := many(3)
	writer, _ := h.targetWriter(s)
	w := h.begin(writer)
	h.publish(w, s)
	r := reader{client: h.client, keys: w.keys}
	key := w.keys.chunk(w.head.Step.Pack, 0)
	kv, _, err := h.client.get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string][]byte{
		"the hash of its bytes is wrong": append(bytes.Clone(kv.Value[:len(kv.Value)-1]), kv.Value[len(kv.Value)-1]^1),
		"the value has 3 bytes":          []byte("abc"),
		"the key " + key + " is missing": nil,
	} {
		if _, err = h.client.etcd.Put(t.Context(), key, string(value)); value == nil {
			_, err = h.client.etcd.Delete(t.Context(), key)
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.advance(t.Context(), at{}, h.bare(w)); err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := h.client.etcd.Revoke(t.Context(), h.writerLease()); err != nil {
		t.Fatal(err)
	}
	next, _ := h.targetWriter(s)
	w = h.begin(next)
	h.publish(w, s)
	before := h.read(at{})
	if before.tree.Snapshot().ID() != s.ID() {
		t.Fatal("the writer has not written the resources again")
	}
	h.publish(w, edited(s, 1, 9))
	if _, err := h.client.etcd.Delete(t.Context(), w.keys.chunk(w.head.Step.Pack, 0)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.advance(t.Context(), before, h.bare(w)); err == nil {
		t.Error("a step is missing, and a reader reads the head")
	}
	if is, err := r.advance(t.Context(), before, *w.head); err != nil || is.ID() != w.last.tree.ID() {
		t.Errorf("the head has the change, and a reader does not read it: %v", err)
	}
	wrong := *w.head
	wrong.Change = "AAAA"
	if _, err := r.advance(t.Context(), before, wrong); err == nil {
		t.Error("a reader trusts the bytes in the head")
	}
}

// bare returns the head of a term without the bytes of its change.
func (h *harness) bare(t *term) Head {
	is := *t.head
	is.Change = ""
	return is
}

// running runs a targetWriter on a goroutine. stop ends the targetWriter.
func running(t *testing.T, s *targetWriter) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		s.run(ctx)
		close(ended)
	}()
	return func() {
		cancel()
		<-ended
	}
}

// TestNoSpace: if the etcd is full, the writer says so with the remedy, readers read on, and the writer publishes when
// there is space again.
func TestNoSpace(t *testing.T) {
	h := start(t, "--quota-backend-bytes=1000000")
	writer, said := h.targetWriter(many(3))
	defer running(t, writer)()
	h.untilHead(3)
	for i := range 100 {
		_, err := h.client.etcd.Put(t.Context(), fmt.Sprint("/other/", i), strings.Repeat("x", 100_000))
		if err == nil {
			continue
		}
		if rpctypes.Error(err) != rpctypes.ErrNoSpace {
			t.Fatal(err)
		}
		break
	}
	writer.wanted.Store(many(4))
	writer.news <- struct{}{}
	said.wait(t, func(e event.Event) bool {
		failed, ok := e.(event.StoreFailed)
		return ok && strings.Contains(failed.Error.Error(), "the etcd is full (NOSPACE): compact and defragment")
	})
	if is := h.read(at{}); is.tree.Snapshot().Len() != 3 {
		t.Errorf("%d resources", is.tree.Snapshot().Len())
	}
	if is := writer.state(); is.Snapshot != many(3).ID() || !strings.Contains(is.Error, "NOSPACE") || is.Since.IsZero() {
		t.Errorf("the state of the writer: %+v", is)
	}
	h.makeSpace()
	h.untilHead(4)
	envoytest.Eventually(t, patience, "the writer shows no error", func() (bool, string) {
		is := writer.state()
		return is.Snapshot == many(4).ID() && is.Error == "", fmt.Sprintf("%+v", is)
	})
}

// TestFailsSince: a writer fails since the first error, whatever errors and terms follow, until a term has published.
func TestFailsSince(t *testing.T) {
	h := start(t)
	writer, _ := h.targetWriter(many(1))
	writer.fail(errors.New("no server answers"))
	since := writer.state().Since
	stays := func(when, text string) {
		t.Helper()
		if is := writer.state(); is.Error != text || !is.Since.Equal(since) {
			t.Errorf("%s: since %s: %+v", when, since, is)
		}
	}
	writer.fail(errors.New("the etcd has no leader"))
	stays("another error", "the etcd has no leader")
	w := h.begin(writer)
	stays("a term that has published nothing", "the etcd has no leader")
	if _, err := w.turn(t.Context()); err != nil {
		t.Fatal(err)
	}
	if is := writer.state(); is.Error != "" || !is.Writes || !is.Since.After(since) {
		t.Errorf("a term that has published: %+v", is)
	}
}

// makeSpace removes the keys of others, compacts and defragments the etcd, and ends the alarm.
func (h *harness) makeSpace() {
	h.Helper()
	c := h.client.etcd
	r, err := c.Delete(h.Context(), "/other/", clientv3.WithPrefix())
	if err != nil {
		h.Fatal(err)
	}
	if _, err := c.Compact(h.Context(), r.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		h.Fatal(err)
	}
	if _, err := c.Defragment(h.Context(), h.etcd.Endpoint); err != nil {
		h.Fatal(err)
	}
	if _, err := c.AlarmDisarm(h.Context(), &clientv3.AlarmMember{}); err != nil {
		h.Fatal(err)
	}
}

// TestLargeValues: large values of others, below a prefix that the store reads, end no read.
func TestLargeValues(t *testing.T) {
	h := start(t)
	k := h.options.Address.keys("")
	for i := range 8 {
		if _, err := h.client.etcd.Put(t.Context(), k.machines()+fmt.Sprint(i), strings.Repeat("x", 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	writer, _ := h.targetWriter(many(1))
	h.publish(h.begin(writer), many(1))
	r, err := Ask(t.Context(), h.options, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range r.Targets[0].Machines {
		if m.Standing != Silent || !strings.Contains(m.Message, "1048576 bytes, and 4096 are allowed") {
			t.Errorf("%+v", m)
		}
	}
	if len(r.Targets[0].Machines) != 8 || r.InSync {
		t.Errorf("%+v", r)
	}
}

// TestKilledWriter: what a writer has written before it was killed is removed by the next term, unless the head needs
// it. Readers read the head before and after.
func TestKilledWriter(t *testing.T) {
	h := start(t)
	first, _ := h.targetWriter(many(2))
	w := h.begin(first)
	h.publish(w, many(2))
	tree, err := history.NewTree(many(5), w.last.tree)
	if err != nil {
		t.Fatal(err)
	}
	next := *w.head
	next.Serial = w.serial()
	if _, err := w.step(t.Context(), &next, tree, w.last.tree); err != nil { // killed before the head moves
		t.Fatal(err)
	}
	if n, _ := h.keys("objects"); n != 2 {
		t.Errorf("%d objects", n)
	}
	if is := h.read(at{}); is.tree.Snapshot().Len() != 2 {
		t.Errorf("%d resources", is.tree.Snapshot().Len())
	}
	if _, err := h.client.etcd.Revoke(t.Context(), h.writerLease()); err != nil {
		t.Fatal(err)
	}
	second, _ := h.targetWriter(many(3))
	w = h.begin(second)
	if n, _ := h.keys("objects"); n != 1 {
		t.Errorf("%d objects at the beginning of the next term", n)
	}
	h.publish(w, many(3))
	if is := h.read(at{}); is.tree.Snapshot().Len() != 3 {
		t.Errorf("%d resources", is.tree.Snapshot().Len())
	}
}
