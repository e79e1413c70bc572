package store

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"xdspub/diag"
	"xdspub/event"
	"xdspub/internal/crash"
	"xdspub/render/history"
	"xdspub/watch/control"
	"xdspub/xds"
)

const (
	// leaseTime is how long the key of a writer outlives the writer.
	leaseTime = 15 * time.Second
	// lookEvery is the longest time between two looks at the key of another writer.
	lookEvery = 10 * time.Second
	// A step with all resources follows after maxChain steps, or earlier if these steps have more than bigChain times
	// the bytes of the last step with all resources.
	maxChain = 1000
	bigChain = 5
	// lagging is the number of steps before the last step with all resources that stay for slow followers.
	lagging = 64
)

// errLost ends a term: another process may be the writer.
var errLost = errors.New("the lease of the writer is over, or another process has moved the head; this writer starts again")

// term is the time in which a targetWriter is the only writer of its target.
type term struct {
	*targetWriter
	client *client
	lease  clientv3.LeaseID
	is     Term  // the value of the key of the writer
	made   int64 // the revision that made the key of the writer
	// head is the present head, and moved the revision that moved it; nil and 0 for none.
	head  *Head
	moved int64
	chain chain
	// cipher encrypts the next step; nil without encryption.
	cipher *cipher
	rolling
}

// chain measures the steps since the last step with all resources.
type chain struct {
	steps int
	bytes int64
	whole int64 // bytes of the last step with all resources
}

// term makes the targetWriter the only writer, and publishes the wanted snapshots. The error says why the term has
// ended.
func (s *targetWriter) term(ctx context.Context) (err error) {
	c, err := connect(ctx, s.options.Options)
	if err != nil {
		return err
	}
	defer c.close()
	defer func() { err = c.explained(err) }()
	lease, alive, err := c.lease(ctx, leaseTime)
	if err != nil {
		return err
	}
	defer c.revoke(lease)
	ctx, over := context.WithCancel(ctx)
	defer over()
	go crash.Guard(func() {
		defer over()
		for range alive { // until the lease is over
		}
	}, s.log.Crashed)()
	t := s.newTerm(c)
	if err = t.begin(ctx, lease); err == nil {
		err = t.follow(ctx)
	}
	if ctx.Err() != nil {
		err = errLost
	}
	return err
}

// follow publishes what is wanted, and advances rollouts, until ctx ends.
func (t *term) follow(ctx context.Context) error {
	for {
		again, err := t.turn(ctx)
		if err != nil {
			return err
		}
		var machines <-chan struct{}
		if t.fleet != nil {
			machines = t.fleet.changed
		}
		timer := time.NewTimer(min(again, jittered(lookAgain))) // the file of age keys may have changed
		select {
		case <-t.news:
		case <-machines:
			time.Sleep(gather)
		case r := <-t.checked:
			t.check.end(r)
		case <-timer.C:
			if err := t.look(ctx); err != nil {
				return err
			}
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// look returns errLost if another process has replaced or removed the head.
func (t *term) look(ctx context.Context) error {
	kv, _, err := t.client.get(ctx, t.keys.head())
	moved := int64(0)
	if kv != nil {
		moved = kv.ModRevision
	}
	if err == nil && moved != t.moved {
		err = errLost
	}
	return err
}

// lease returns a lease that the client keeps alive until ctx ends. alive is closed when the lease is over.
func (c *client) lease(ctx context.Context, ttl time.Duration) (id clientv3.LeaseID, alive <-chan *clientv3.LeaseKeepAliveResponse, err error) {
	if id, err = c.grant(ctx, ttl); err != nil {
		return 0, nil, err
	}
	alive, err = c.etcd.KeepAlive(ctx, id)
	return id, alive, err
}

// revoke ends a lease, which removes its keys.
func (c *client) revoke(id clientv3.LeaseID) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.etcd.Ctx()), dialTime)
	defer cancel()
	_, _ = c.etcd.Revoke(ctx, id) // otherwise the lease ends by itself
}

// begin waits until the targetWriter is the only writer, and reads the head.
func (t *term) begin(ctx context.Context, lease clientv3.LeaseID) error {
	if err := t.campaign(ctx, lease); err != nil {
		return err
	}
	t.show(func(c *control.Store) { c.Writes, c.Writer = true, "" })
	t.log.Write(event.StoreTerm{Store: t.options.Address.String()})
	r := reader{client: t.client, keys: t.keys, ageKeys: t.options.AgeKeys}
	var err error
	if t.head, t.moved, _, err = r.head(ctx); err != nil {
		return err
	}
	if t.head == nil {
		t.forget()
		return nil
	}
	if err := t.encrypts(); err != nil {
		return err
	}
	if t.cipher != nil && t.head.Step.Cipher == "" {
		return t.beginPlain()
	}
	whole := *t.head
	whole.Change = "" // the writer checks the objects
	if t.last.tree, err = r.advance(ctx, t.last, whole); err == nil {
		t.last.id = t.head.Tree
	} else if err = t.headUnreadable(err); err != nil {
		return err
	}
	if running := t.head.running(); running != nil {
		if t.next, err = r.advance(ctx, at{t.head.Serial, t.head.Step.Serial, t.last.tree, t.last.id}, running.Candidate); err != nil {
			t.fail(t.client.explained(err))
			t.next = nil
		}
		t.newWave()
	}
	return t.collect(ctx)
}

// beginPlain begins a term that encrypts, with a plain head. Another process may have written the plain head, so
// rollouts must not take their base from the head. If the head has the snapshot of this process, this snapshot is the
// base.
func (t *term) beginPlain() error {
	tree, err := history.NewTree(t.wanted.Load(), nil)
	switch {
	case err != nil:
		return err
	case tree.ID() == t.head.Tree:
		t.last.tree, t.last.id = tree, t.head.Tree
	case t.plan() != nil:
		return &CipherError{"the head at " + t.keys.head(), "is not encrypted, and has other resources than this writer, so no rollout can begin: remove the key, and all machines get the next snapshot at once"}
	default:
		t.forget()
	}
	return nil
}

// headUnreadable handles an error of reading the head. The next step then has all resources. If there are rollouts and
// the head is encrypted for others, headUnreadable returns the error: without the base, all machines would get the next
// snapshot at once.
func (t *term) headUnreadable(err error) error {
	_, others := errors.AsType[*CipherError](err)
	if others && (t.plan() != nil || t.head.Rollout != nil) {
		return err
	}
	if t.forget(); !t.rekeyed() {
		t.fail(t.client.explained(err))
	}
	return nil
}

// forget forgets the resources of the head, so that the next step has all resources.
func (t *term) forget() { t.last = at{serial: t.last.serial} }

// id returns the Head.Tree of a tree.
func (t *term) id(tree *history.Tree) string { return t.cipher.name(tree.ID()) }

// rekeyed reports whether the head has other recipients than the next step. The next step then has all resources.
func (t *term) rekeyed() bool { return t.head != nil && t.head.Step.Cipher != t.cipher.fingerprint() }

// encrypts reads the age keys for the next step.
func (t *term) encrypts() (err error) {
	if t.cipher, err = readCipher(t.options.AgeKeys); err == nil && t.cipher == nil && t.rekeyed() {
		err = &CipherError{"the head at " + t.keys.head(), "is encrypted, and this writer would write secrets in plain: set --encrypt-secrets, or remove the key"}
	}
	return err
}

// campaign waits until the key of the writer is gone, and makes the key.
func (t *term) campaign(ctx context.Context, lease clientv3.LeaseID) error {
	t.lease, t.is = lease, Term{Writer: t.options.By, PID: os.Getpid(), Since: time.Now().UTC().Round(0)}
	text, err := json.Marshal(t.is)
	if err != nil {
		return err
	}
	key, said := t.keys.writer(), ""
	for {
		none := clientv3.Compare(clientv3.CreateRevision(key), "=", 0)
		made, revision, err := t.client.commit(ctx, []clientv3.Cmp{none}, clientv3.OpPut(key, string(text), clientv3.WithLease(lease)))
		if err != nil || made {
			t.made = revision
			return err
		}
		kv, revision, err := t.client.get(ctx, key)
		if err != nil {
			return err
		}
		if kv == nil {
			continue
		}
		if other := termIn(kv).Writer; other != said {
			said = other
			t.show(func(c *control.Store) { c.Writer, c.Error = other, "" })
			t.log.Write(event.StoreHasWriter{Store: t.options.Address.String(), Writer: other})
		}
		if t.client.waitRemoved(ctx, key, revision); ctx.Err() != nil {
			return errLost
		}
	}
}

// termIn returns the term that a key of a writer holds.
func termIn(kv *mvccpb.KeyValue) (is Term) {
	if parse(string(kv.Key), kv.Value, maxTerm, &is) != nil {
		return Term{Writer: "an unknown writer"}
	}
	is.Writer = diag.ClipLine(is.Writer, maxWords)
	if r := is.Rollout; r != nil {
		for _, text := range []*string{&r.Snapshot, &r.Base, &r.Name} {
			*text = diag.ClipLine(*text, maxWords)
		}
		r.Message = diag.ClipLine(r.Message, maxMessage)
	}
	return is
}

// waitRemoved waits until a key is removed after a revision, but not longer than lookEvery.
func (c *client) waitRemoved(ctx context.Context, key string, revision int64) {
	ctx, cancel := context.WithTimeout(clientv3.WithRequireLeader(ctx), lookEvery)
	defer cancel()
	for r := range c.etcd.Watch(ctx, key, clientv3.WithRev(revision+1), clientv3.WithFilterPut()) {
		if len(r.Events) > 0 {
			return
		}
	}
}

// publish moves the head to a snapshot, or begins the rollout of the snapshot. If the head has the snapshot already,
// and is the last head of this process, publish changes nothing. Any other head with the snapshot gets a new serial:
// the store may have been restored from a backup.
func (t *term) publish(ctx context.Context, s *xds.Snapshot) error {
	if err := t.encrypts(); err != nil {
		return err
	}
	tree, err := history.NewTree(s, t.lastTree())
	if err != nil {
		return err
	}
	base, id, r := t.head != nil && t.last.tree != nil, t.id(tree), t.head.running()
	switch {
	case base && tree.ID() == t.last.tree.ID():
		return t.endRollout(ctx, s)
	case base && t.head.Rollout != nil && t.head.Rollout.Candidate.Tree == id && (r == nil || t.next != nil && !t.rekeyed()):
		return t.continueRollout(ctx, s, tree)
	case base && (t.plan() != nil || r != nil && t.rekeyed()):
		return t.rollOut(ctx, s, tree)
	}
	next, from := t.newHead(s, tree, t.serial()), t.lastTree()
	if t.rekeyed() {
		from = nil
	}
	then, err := t.step(ctx, &next, tree, from)
	if err != nil {
		return err
	}
	if err := t.move(ctx, next, then...); err != nil {
		return err
	}
	t.last, t.next = at{next.Serial, next.Step.Serial, tree, id}, nil
	t.published(s, &next)
	return t.shorten(ctx)
}

// published shows that a snapshot is in the store. moved is the new head with the snapshot; nil if the store
// had the snapshot before.
func (t *term) published(s *xds.Snapshot, moved *Head) {
	t.lastLogged = ""
	t.show(func(c *control.Store) { c.Snapshot = s.ID() })
	if moved == nil {
		return
	}
	published := event.StorePublished{Store: t.options.Address.String(), Snapshot: s.ID(), Bytes: moved.Step.Bytes}
	if t.cipher != nil {
		published.Name = moved.Snapshot
	}
	t.log.Write(published)
}

// newHead returns the head of a snapshot, without a step.
func (t *term) newHead(s *xds.Snapshot, tree *history.Tree, serial int64) Head {
	h := Head{
		Layout: layout, Serial: serial, Time: time.Now().UTC().Round(0), Writer: diag.ClipLine(t.options.By, maxWords),
		Snapshot: t.cipher.name(s.ID()), Resources: s.Len(), Tree: t.id(tree),
	}
	if t.head != nil {
		h.Whole = t.head.Whole
	}
	return h
}

// serial returns the serial of the next head.
func (t *term) serial() int64 {
	return max(max(t.last.serial, t.head.lastSerial())+1, time.Now().UnixMilli())
}

// step writes the bytes of the change from one tree to another, and sets Step of next. Without the tree from, step
// writes all resources, and sets Whole. step returns the operation that writes the key of the step.
func (t *term) step(ctx context.Context, next *Head, tree, from *history.Tree) ([]clientv3.Op, error) {
	data, err := tree.Pack(from)
	if err != nil {
		return nil, err
	}
	if data, err = t.cipher.encrypt(data); err != nil {
		return nil, err
	}
	base := t.id(from)
	next.Step = Step{
		Serial: next.Serial, Base: base, Tree: next.Tree, Pack: hashOf(data), Bytes: int64(len(data)), Cipher: t.cipher.fingerprint(),
	}
	if next.Change = ""; len(data) <= maxChange {
		next.Change = base64.StdEncoding.EncodeToString(data)
	}
	if len(data) > maxPack {
		return nil, fmt.Errorf("the change has %d bytes, and a store takes %d", len(data), int64(maxPack))
	}
	if err := t.put(ctx, next.Step.Pack, data); err != nil {
		return nil, err
	}
	if base == "" {
		next.Whole = next.Serial
		t.chain = chain{whole: next.Step.Bytes}
	} else {
		t.chain.steps++
		t.chain.bytes += next.Step.Bytes
	}
	text, err := json.Marshal(next.Step)
	return []clientv3.Op{clientv3.OpPut(t.keys.step(next.Serial), string(text))}, err
}

// put writes the chunks of a change that the store lacks.
func (t *term) put(ctx context.Context, hash string, data []byte) error {
	for n := 0; len(data) > 0; n++ {
		size := min(chunkSize, len(data))
		key, none := t.keys.chunk(hash, n), []clientv3.Cmp{t.mine()}
		kv, _, err := t.client.get(ctx, key)
		if err != nil {
			return err
		}
		if kv == nil || string(kv.Value) != string(data[:size]) {
			done, _, err := t.client.commit(ctx, none, clientv3.OpPut(key, string(data[:size])))
			if err != nil {
				return fmt.Errorf("write %s: %w", key, err)
			}
			if !done {
				return errLost
			}
		}
		data = data[size:]
	}
	return nil
}

// mine is the condition that the key of the writer is still the key of this term.
func (t *term) mine() clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(t.keys.writer()), "=", t.made)
}

// move moves the head, and executes other operations, in one transaction.
func (t *term) move(ctx context.Context, next Head, then ...clientv3.Op) error {
	text, err := json.Marshal(next)
	if err != nil {
		return err
	}
	key := t.keys.head()
	same := clientv3.Compare(clientv3.ModRevision(key), "=", t.moved)
	done, revision, err := t.client.commit(ctx, []clientv3.Cmp{t.mine(), same}, append(then, clientv3.OpPut(key, string(text)))...)
	if err != nil {
		return fmt.Errorf("write %s: %w", key, err)
	}
	if !done {
		return errLost
	}
	t.head, t.moved = &next, revision
	return nil
}

// isLong reports whether a step with all resources has to follow.
func (t *term) isLong() bool {
	return t.chain.steps >= maxChain || t.chain.bytes > bigChain*t.chain.whole
}

// shorten writes a step with all resources if the chain is long, and removes old steps. No rollout may run.
func (t *term) shorten(ctx context.Context) error {
	switch {
	case t.head.Whole == t.head.Serial:
		return t.collect(ctx)
	case !t.isLong():
		return nil
	}
	next := *t.head
	next.Serial = t.serial()
	then, err := t.step(ctx, &next, t.last.tree, nil)
	if err != nil {
		return err
	}
	if err := t.move(ctx, next, then...); err != nil {
		return err
	}
	t.last.serial, t.last.step = next.Serial, next.Step.Serial
	return t.collect(ctx)
}
