package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"xdspub/event"
	"xdspub/store/waves"
	"xdspub/tools/portion"
	"xdspub/watch/control"
	"xdspub/xds"
)

// follows is a machine of a model: what it has, and what it has said.
type follows struct {
	waves.Machine
	at       at
	snapshot string // what is out
	refuses  map[string]bool
}

// model is a fleet with a writer whose steps a test chooses. After each step, the model compares the head with what
// rollouts promise.
type model struct {
	*harness
	etcd         *clientv3.Client // of the writer, with faults
	fault        func(applied bool) bool
	writes       int
	now          time.Time
	plan         waves.Plan
	wanted       *xds.Snapshot
	lease        clientv3.LeaseID // of all machines
	writer       *Writer
	targetWriter *targetWriter
	term         *term
	machines     []*follows
	paused       bool
	aborted      int64 // the step of the candidate that an operator has aborted

	was     *Head
	reached time.Time // since when the last open wave has its quorum; zero for not
	said    events
	log     []string // the steps of the test
}

// bake is the bake time of each wave of a model.
const bake = time.Minute

// newModel returns a model in a store of its own, with a first snapshot on all machines.
func (h *harness) newModel(name string, machines int) *model {
	h.Helper()
	own := *h
	own.options.Address.Prefix = "/" + name
	m := &model{harness: &own, now: time.Unix(1_800_000_000, 0), wanted: clusters(1)}
	var err error
	if m.plan, err = (waves.Plan{{Label: "tier=canary", Quorum: 100, Bake: bake}, {Percent: 50, Quorum: 50, Bake: bake}}).Checked(); err != nil {
		h.Fatal(err)
	}
	for i := range machines {
		f := &follows{Machine: waves.Machine{Target: "-", Name: fmt.Sprint("m", i)}, refuses: make(map[string]bool)}
		if i < 2 {
			f.Labels = "tier=canary"
		}
		m.machines = append(m.machines, f)
	}
	m.etcd, err = clientv3.New(clientv3.Config{
		Logger: zap.NewNop(), Endpoints: own.options.Address.Endpoints, DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(m.intercept)},
	})
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() { _ = m.etcd.Close() })
	if m.lease, err = h.client.grant(h.Context(), time.Hour); err != nil {
		h.Fatal(err)
	}
	m.start()
	m.turn()
	m.deliverAll()
	return m
}

// errFault is the error of a write that fails in a test.
var errFault = status.Error(codes.Aborted, "a fault of the test")

// intercept counts the writes of the writer, and has them fail before or after they are applied.
func (m *model) intercept(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, call grpc.UnaryInvoker, o ...grpc.CallOption) error {
	if _, writes := req.(*etcdserverpb.TxnRequest); !writes || m.fault == nil {
		return call(ctx, method, req, reply, cc, o...)
	}
	m.writes++
	if m.fault(false) {
		return errFault
	}
	if err := call(ctx, method, req, reply, cc, o...); err != nil {
		return err
	}
	if m.fault(true) {
		return errFault
	}
	return nil
}

// start starts a new process of the writer.
func (m *model) start() {
	m.Helper()
	o := WriterOptions{Options: m.options, By: "me@here"}
	m.writer = NewWriter(o)
	m.writer.Configure(m.plan)
	m.targetWriter = &targetWriter{
		options: o, keys: m.options.Address.keys(""), log: event.New(discard{}, m.said.add), news: make(chan struct{}, 1),
		writer: m.writer, changed: m.writer.changed, now: func() time.Time { return m.now },
	}
	m.targetWriter.wanted.Store(m.wanted)
	c := &client{etcd: m.etcd, address: m.options.Address}
	lease, err := c.grant(m.Context(), time.Hour)
	if err != nil {
		m.Fatal(err)
	}
	m.term = m.targetWriter.newTerm(c)
	if err := m.term.begin(m.Context(), lease); err != nil {
		if errors.Is(err, errFault) || strings.Contains(err.Error(), errFault.Error()) {
			m.kill()
			m.start()
			return
		}
		m.Fatal(err)
	}
	m.term.fleet = newFleetKeys(c, m.targetWriter.keys)
}

// kill ends the process of the writer.
func (m *model) kill() {
	m.Helper()
	kv, _, err := m.harness.client.get(m.Context(), m.targetWriter.keys.writer())
	if err != nil {
		m.Fatal(err)
	}
	if kv != nil {
		if _, err := m.harness.client.etcd.Revoke(m.Context(), clientv3.LeaseID(kv.Lease)); err != nil {
			m.Fatal(err)
		}
	}
}

// restart kills the writer, and starts another one.
func (m *model) restart() {
	m.Helper()
	m.log = append(m.log, "restart")
	m.kill()
	m.reached = time.Time{}
	m.start()
	m.look()
}

// turn makes the writer look at all that has happened. ended means that the writer has ended by a fault, and has been
// started again.
func (m *model) turn() (ended bool) {
	m.Helper()
	m.log = append(m.log, "turn")
	if _, err := m.term.fleet.read(m.Context()); err != nil {
		m.Fatal(err)
	}
	if m.reached.IsZero() && m.quorum() {
		m.reached = m.now
	}
	_, err := m.term.turn(m.Context())
	m.look()
	if err != nil {
		if !strings.Contains(err.Error(), errFault.Error()) {
			m.Fatalf("%v\n%v", err, m.log)
		}
		m.restart()
		return true
	}
	return false
}

// edit changes the source tree.
func (m *model) edit(version int) {
	m.log = append(m.log, fmt.Sprint("edit ", version))
	m.wanted = clusters(version)
	m.targetWriter.wanted.Store(m.wanted)
}

// head returns the head, and the candidate's rollout or nil.
func (m *model) head() *Head {
	m.Helper()
	head, _, _, err := reader{client: m.harness.client, keys: m.targetWriter.keys}.head(m.Context())
	if err != nil {
		m.Fatal(err)
	}
	return head
}

// deliver makes a machine read its head, and acknowledge it.
func (m *model) deliver(f *follows) {
	m.Helper()
	m.log = append(m.log, "deliver "+f.Name)
	head := m.head().of(f.Machine)
	switch {
	case head.Serial < f.at.serial:
		m.Fatalf("%s has the head %d, and should get %d\n%v", f.Name, f.at.serial, head.Serial, m.log)
	case head.Serial == f.at.serial && f.at.tree.ID() != head.Tree:
		m.Fatalf("%s: two heads with the serial %d\n%v", f.Name, head.Serial, m.log)
	}
	tree, err := reader{client: m.harness.client, keys: m.targetWriter.keys}.advance(m.Context(), f.at, head)
	if err != nil || tree.Snapshot().ID() != head.Snapshot {
		m.Fatalf("%s: %v\n%v", f.Name, err, m.log)
	}
	f.at = at{head.Serial, head.Step.Serial, tree, head.Tree}
	ack := Ack{Layout: layout, Serial: head.Serial, State: Published, Waves: true, Labels: f.Labels}
	if f.refuses[head.Snapshot] {
		ack.State, ack.Message = Refused, "no such cluster"
	} else {
		f.snapshot = head.Snapshot
	}
	ack.Snapshot = f.snapshot
	text, err := json.Marshal(ack)
	if err != nil {
		m.Fatal(err)
	}
	if _, err = m.harness.client.etcd.Put(m.Context(), m.targetWriter.keys.machines()+f.Name, string(text), clientv3.WithLease(m.lease)); err != nil {
		m.Fatal(err)
	}
}

func (m *model) deliverAll() {
	for _, f := range m.machines {
		m.deliver(f)
	}
}

// quorum reports whether enough machines of the last open wave have acknowledged the candidate.
func (m *model) quorum() bool {
	r := m.was.running()
	if r == nil {
		return false
	}
	in, has := 0, 0
	for _, f := range m.machines {
		if r.Waves.Of(f.Machine) == r.Open-1 {
			if in++; f.at.serial == r.Candidate.Serial && f.snapshot == r.Candidate.Snapshot {
				has++
			}
		}
	}
	return in == 0 || has*100 >= in*r.Waves[r.Open-1].Quorum
}

// look compares the head with the head before.
func (m *model) look() {
	m.Helper()
	is := m.head()
	was := m.was
	m.was = is
	a, b := was.running(), is.running()
	opened := a != nil && b != nil && a.Candidate.Step == b.Candidate.Step && b.Open > a.Open
	done := a != nil && is.Rollout == nil && is.Tree == a.Candidate.Tree
	if opened || done {
		last := a.Open // a turn may open several waves if no machine is in them
		if opened {
			last = b.Open - 1
		}
		m.mayPass(a, last)
	}
	if opened || done || b != nil && (a == nil || a.Candidate.Step != b.Candidate.Step) {
		m.reached = time.Time{}
		if m.paused {
			m.Fatalf("a wave was opened during a pause\n%v", m.log)
		}
	}
	if b != nil && b.Candidate.Step.Serial == m.aborted {
		m.Fatalf("the candidate was aborted, and is out\n%v", m.log)
	}
	if t := is.Rollout; t != nil && t.TakenBack != nil && is.Tree == t.Candidate.Tree {
		m.Fatalf("the head is what was taken back\n%v", m.log)
	}
}

// mayPass requires that the waves of a rollout from Open on, up to the wave last, had their quorum and bake time.
func (m *model) mayPass(r *Rollout, last int) {
	m.Helper()
	if m.isEmpty(r, r.Open-1) {
		return
	}
	if m.reached.IsZero() || m.now.Sub(m.reached) < bake {
		m.Fatalf("the wave %d was passed %s after its quorum\n%v", r.Open, m.now.Sub(m.reached), m.log)
	}
	for wave := r.Open; wave < last; wave++ {
		if !m.isEmpty(r, wave) {
			m.Fatalf("the wave %d was passed at once\n%v", wave+1, m.log)
		}
	}
}

// isEmpty reports whether no machine is in a wave, from 0.
func (m *model) isEmpty(r *Rollout, wave int) bool {
	for _, f := range m.machines {
		if r.Waves.Of(f.Machine) == wave {
			return false
		}
	}
	return true
}

// rest lets the rollout go on until it rests, and compares all machines with the wanted snapshot, or with the base if a
// machine refuses the wanted snapshot.
func (m *model) rest() {
	m.Helper()
	m.order(pauseOrder, false)
	m.aborted = 0
	for range 4 * len(m.plan) {
		m.turn()
		m.deliverAll()
		ended := m.turn()
		m.now = m.now.Add(bake)
		if m.was.running() == nil && !ended {
			m.deliverAll()
			break
		}
	}
	m.turn() // tries nothing again
	head := m.head()
	if r := head.running(); r != nil {
		m.Fatalf("the rollout does not end: wave %d\n%v", r.Open, m.log)
	}
	want := m.wanted.ID()
	if head.Rollout != nil {
		want = head.Snapshot
		if head.Rollout.Candidate.Snapshot != m.wanted.ID() || head.Rollout.TakenBack.Reason == "" {
			m.Fatalf("another snapshot was taken back\n%v", m.log)
		}
	}
	for _, f := range m.machines {
		if f.snapshot != want && !f.refuses[want] {
			m.Fatalf("%s has the snapshot %s, and not %s\n%v", f.Name, f.snapshot, want, m.log)
		}
	}
	if v := m.targetWriter.state().Rollout; (v != nil) != (head.Rollout != nil) || v != nil && v.State != control.TakenBack {
		m.Fatalf("the writer shows %v\n%v", v, m.log)
	}
}

// order gives an order, or takes it back.
func (m *model) order(kind string, given bool) {
	m.Helper()
	m.log = append(m.log, fmt.Sprint(kind, " ", given))
	var err error
	o := Order{By: "me@here"}
	if r := m.head().Rollout; r != nil {
		o.Candidate = r.Candidate.Step.Serial
	}
	if given {
		err = m.harness.client.give(m.Context(), m.targetWriter.keys, kind, o)
	} else {
		_, err = m.harness.client.etcd.Delete(m.Context(), m.targetWriter.keys.orders()+kind)
	}
	if err != nil {
		m.Fatal(err)
	}
	switch kind {
	case pauseOrder:
		m.paused = given
	case abortOrder:
		if m.head().running() != nil {
			for m.turn() {
			}
			m.aborted = o.Candidate
			m.look()
		}
	}
}

// step does something by chance.
func (m *model) step(r *rand.Rand) {
	switch n := r.IntN(20); {
	case n < 2:
		m.edit(1 + r.IntN(4))
	case n < 8:
		m.deliver(m.machines[r.IntN(len(m.machines))])
	case n < 9:
		m.deliverAll()
	case n < 14:
		m.turn()
	case n < 17:
		m.now = m.now.Add(bake / 2)
	case n < 18:
		if m.restart(); r.IntN(2) == 0 {
			m.machines[r.IntN(len(m.machines))].at = at{} // a machine starts, too
		}
	case n < 19:
		m.order(pauseOrder, !m.paused)
	default:
		m.order([]string{abortOrder, retryOrder}[r.IntN(2)], true)
	}
}

// TestRolloutModel: after random sequences of edits, acknowledgements, refusals, restarts, pauses and aborts, no
// machine of a later wave has a candidate before the quorum and the bake time of the waves before, nobody keeps a
// candidate that was taken back, and at rest all machines have one snapshot.
func TestRolloutModel(t *testing.T) {
	h := start(t)
	for seed := range uint64(48 / portion.Every(8, 16)) {
		m := h.newModel(fmt.Sprint("model", seed), 7)
		r := rand.New(rand.NewPCG(seed, 0))
		if seed%2 == 1 {
			m.machines[r.IntN(len(m.machines))].refuses[clusters(3).ID()] = true
		}
		m.log = []string{fmt.Sprint("seed ", seed)}
		for range 60 {
			m.step(r)
		}
		m.rest()
		m.edit(4)
		m.rest()
	}
}

// TestRolloutRestarts: a writer that ends before or after any of its writes leaves a rollout that the next writer
// continues: through all waves, superseded by an edit, taken back after a refusal, and aborted.
func TestRolloutRestarts(t *testing.T) {
	h := start(t)
	scenario := func(m *model) {
		m.machines[6].refuses[clusters(4).ID()] = true
		m.edit(2) // goes to all
		m.rest()
		m.edit(3) // superseded in its second wave
		m.turn()
		m.deliver(m.machines[0]) // not the quorum
		for range 2 {
			m.now = m.now.Add(bake)
			m.turn()
		}
		m.deliverAll()
		for range 2 {
			m.now = m.now.Add(bake)
			m.turn()
			m.deliverAll()
		}
		m.edit(4) // refused
		m.rest()
		m.machines[0].at = at{} // a machine that starts reads the base
		m.edit(2)
		m.rest()
		m.edit(5) // aborted
		m.turn()
		m.order(abortOrder, true)
		m.edit(6)
		m.rest()
	}
	m := h.newModel("whole", 7)
	m.fault = func(bool) bool { return false }
	scenario(m)
	all := m.writes
	if all < 20 {
		t.Fatalf("only %d writes", all)
	}
	for n := 1; n <= 2*all; n += portion.Every(21, 43) {
		m := h.newModel(fmt.Sprint("fault", n), 7)
		m.fault = func(applied bool) bool {
			if m.writes == (n+1)/2 && applied == (n%2 == 0) {
				m.writes++ // the fault happens once
				return true
			}
			return false
		}
		scenario(m)
		if m.wanted.ID() != m.head().Snapshot {
			t.Fatalf("fault %d: the head has another snapshot", n)
		}
	}
}

// TestRolloutWrites: the writer writes as often for many machines as for a few.
func TestRolloutWrites(t *testing.T) {
	h := start(t)
	var writes []int
	for _, machines := range []int{7, 70} {
		m := h.newModel(fmt.Sprint("writes", machines), machines)
		m.fault = func(bool) bool { return false }
		m.edit(2)
		m.rest()
		writes = append(writes, m.writes)
	}
	if writes[0] != writes[1] || writes[0] > 12 {
		t.Errorf("%v writes", writes)
	}
}

// TestRolloutReaders: machines of any age read the base and the candidate, also after a writer has given both new
// serials.
func TestRolloutReaders(t *testing.T) {
	m := start(t).newModel("readers", 7)
	large := many(500)
	for i := range 3 { // the steps have changes only
		if i > 0 {
			large = edited(large, 20, i)
		}
		m.wanted = large
		m.targetWriter.wanted.Store(large)
		if i < 2 {
			m.rest()
		}
	}
	m.turn()
	m.restart()
	m.turn()
	if m.was.running() == nil || m.was.Step.Base == "" || m.was.Serial < m.was.running().Candidate.Step.Serial {
		t.Fatalf("%+v", m.was)
	}
	for range 2 {
		m.deliverAll()
		for _, f := range m.machines {
			f.at = at{}
		}
	}
	m.rest()
}

// TestRolloutRotation: with other age recipients, a rollout begins again, and what was taken back stays. A writer that
// can't read the base publishes nothing: otherwise all machines would get the next snapshot at once.
func TestRolloutRotation(t *testing.T) {
	h := start(t)
	old, _ := identity(t)
	young, public := identity(t)
	h.options.AgeKeys = keyFile(t, old)
	machine := reader{client: h.client, keys: h.options.Address.keys(""), ageKeys: keyFile(t, young)}
	begin := func(s *xds.Snapshot) (*term, error) {
		t.Helper()
		writer, _ := h.targetWriter(s)
		writer.writer.Configure(waves.Plan{{Percent: 50, Quorum: 100}, {Quorum: 100}})
		w := writer.newTerm(h.client)
		lease, err := h.client.grant(t.Context(), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if kv, _, err := h.client.get(t.Context(), writer.keys.writer()); err != nil || kv != nil {
			if _, err = h.client.etcd.Revoke(t.Context(), clientv3.LeaseID(kv.Lease)); err != nil {
				t.Fatal(err)
			}
		}
		w.fleet = newFleetKeys(h.client, writer.keys)
		return w, w.begin(t.Context(), lease)
	}
	turn := func(w *term) *Head {
		t.Helper()
		if _, err := w.fleet.read(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := w.turn(t.Context()); err != nil {
			t.Fatal(err)
		}
		head := h.headOf()
		return &head
	}
	reads := func(h Head, resources int) {
		t.Helper()
		if tree, err := machine.advance(t.Context(), at{}, h); err != nil || tree.Snapshot().Len() != resources {
			t.Fatal(err)
		}
	}
	w, err := begin(many(2))
	if err != nil {
		t.Fatal(err)
	}
	turn(w)
	for i := range 100 { // machines of both waves, which acknowledge nothing
		if _, err := h.client.etcd.Put(t.Context(), w.keys.machines()+fmt.Sprint("m", i), `{"layout":1,"waves":true}`, clientv3.WithLease(w.lease)); err != nil {
			t.Fatal(err)
		}
	}
	w.wanted.Store(many(3))
	if r := turn(w).running(); r == nil || r.Open != 1 {
		t.Fatal(r)
	}
	writeKeys(t, h.options.AgeKeys, old, public)
	head := turn(w)
	if r := head.running(); r == nil || r.Open != 1 {
		t.Fatal(r)
	}
	reads(*head, 2)
	reads(head.Rollout.Candidate, 3)
	if err := w.takeBack(t.Context(), "by a test"); err != nil {
		t.Fatal(err)
	}
	writeKeys(t, h.options.AgeKeys, old, public, old)
	if head = turn(w); head.running() != nil || head.Rollout == nil {
		t.Fatalf("%+v", head)
	}
	writeKeys(t, h.options.AgeKeys, public, old)
	if w, err = begin(many(3)); err != nil {
		t.Fatal(err)
	}
	if head = turn(w); head.running() != nil || head.Rollout == nil {
		t.Fatalf("what was taken back is out: %+v", head)
	}
	reads(*head, 2)
	writeKeys(t, h.options.AgeKeys, identityOnly(t))
	if _, err = begin(many(3)); err == nil || !strings.Contains(err.Error(), "is encrypted for others: add an identity to "+h.options.AgeKeys) {
		t.Fatal(err)
	}
	if after := h.headOf(); after.Serial != head.Serial {
		t.Errorf("%+v", after)
	}
}

// identityOnly returns a new age identity.
func identityOnly(t testing.TB) string {
	secret, _ := identity(t)
	return secret
}
