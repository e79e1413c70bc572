package store

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
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

// term is the time in which a slot is the only writer of its target.
type term struct {
	*slot
	client *client
	made   int64 // the revision that made the key of the writer
	// head is the present head, and moved the revision that moved it; nil and 0 for none.
	head  *Head
	moved int64
	chain chain
	// cipher encrypts the next step; nil without encryption.
	cipher *cipher
}

// chain measures the steps since the last step with all resources.
type chain struct {
	steps int
	bytes int64
	whole int64 // bytes of the last step with all resources
}

// term makes the slot the only writer, and publishes the wanted snapshots. The error says why the term has ended.
func (s *slot) term(ctx context.Context) (err error) {
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
	t := &term{slot: s, client: c}
	if err = t.begin(ctx, lease); err == nil {
		err = t.follow(ctx)
	}
	if ctx.Err() != nil {
		err = errLost
	}
	return err
}

// follow publishes what is wanted until ctx ends.
func (t *term) follow(ctx context.Context) error {
	for {
		if err := t.publish(ctx, t.wanted.Load()); err != nil {
			return err
		}
		var again <-chan time.Time
		if t.options.AgeKeys != "" { // the file may have changed
			again = time.After(jittered(lookAgain))
		}
		select {
		case <-t.news:
		case <-again:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
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

// begin waits until the slot is the only writer, and reads the head.
func (t *term) begin(ctx context.Context, lease clientv3.LeaseID) error {
	if err := t.campaign(ctx, lease); err != nil {
		return err
	}
	t.show(func(c *control.Store) { c.Writes, c.Writer, c.Error = true, "", "" })
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
	if same, err := t.encrypts(); err != nil || !same {
		return err
	}
	whole := *t.head
	whole.Change = "" // the writer checks the objects
	if t.last.tree, err = r.advance(ctx, t.last, whole); err != nil {
		t.fail(t.client.explained(err))
		t.forget()
	} else {
		t.last.id = t.head.Tree
	}
	return t.collect(ctx)
}

// forget forgets the resources of the head, so that the next step has all resources.
func (t *term) forget() { t.last = at{serial: t.last.serial} }

// id returns the Head.Tree of a tree.
func (t *term) id(tree *history.Tree) string { return t.cipher.name(tree.ID()) }

// encrypts reads the age keys for the next step. same means that the head has the same recipients. Otherwise, the next
// step has all resources.
func (t *term) encrypts() (same bool, err error) {
	if t.cipher, err = readCipher(t.options.AgeKeys); err != nil {
		return false, err
	}
	if t.head == nil || t.head.Step.Cipher == t.cipher.marks() {
		return true, nil
	}
	if t.cipher == nil {
		return false, &CipherError{"the head at " + t.keys.head(), "is encrypted, and this writer would write secrets in plain: set --encrypt-secrets, or remove the key"}
	}
	t.forget()
	return false, nil
}

// campaign waits until the key of the writer is gone, and makes the key.
func (t *term) campaign(ctx context.Context, lease clientv3.LeaseID) error {
	text, err := json.Marshal(Term{Writer: t.options.By, PID: os.Getpid(), Since: time.Now().UTC().Round(0)})
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
		if other := writerIn(kv); other != said {
			said = other
			t.show(func(c *control.Store) { c.Writer, c.Error = other, "" })
			t.log.Write(event.StoreHasWriter{Store: t.options.Address.String(), Writer: other})
		}
		if t.client.waitRemoved(ctx, key, revision); ctx.Err() != nil {
			return errLost
		}
	}
}

// writerIn returns the writer that a key names.
func writerIn(kv *mvccpb.KeyValue) string {
	var other Term
	if parse(string(kv.Key), kv.Value, maxAck, &other) != nil {
		return "an unknown writer"
	}
	return diag.ClipLine(other.Writer, maxWords)
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

// publish moves the head to a snapshot. If the head has the snapshot already, and is the last head of this process,
// publish changes nothing. Any other head with the snapshot gets a new serial: the store may have been restored from a
// backup.
func (t *term) publish(ctx context.Context, s *xds.Snapshot) error {
	if _, err := t.encrypts(); err != nil {
		return err
	}
	tree, err := history.NewTree(s, t.last.tree)
	if err != nil {
		return err
	}
	id := t.id(tree)
	is := t.head != nil && t.last.tree != nil && t.head.Tree == id
	if is && t.head.Serial == t.last.serial {
		t.published(s.ID())
		return nil
	}
	next := Head{
		Layout: layout, Serial: t.serial(), Time: time.Now().UTC().Round(0), Writer: diag.ClipLine(t.options.By, maxWords),
		Snapshot: t.cipher.name(s.ID()), Resources: s.Len(), Tree: id,
	}
	var then []clientv3.Op
	if is {
		next.Whole, next.Step, next.Change = t.head.Whole, t.head.Step, t.head.Change
	} else if then, err = t.step(ctx, &next, tree); err != nil {
		return err
	}
	if err := t.move(ctx, next, then...); err != nil {
		return err
	}
	t.last = at{next.Serial, tree, id}
	if t.published(s.ID()); is {
		return nil
	}
	published := event.StorePublished{Store: t.options.Address.String(), Snapshot: s.ID(), Bytes: next.Step.Bytes}
	if t.cipher != nil {
		published.Name = next.Snapshot
	}
	t.log.Write(published)
	if next.Whole == next.Serial {
		return t.collect(ctx)
	}
	if t.chain.steps < maxChain && t.chain.bytes <= bigChain*t.chain.whole {
		return nil
	}
	return t.writeWhole(ctx, next, tree)
}

// published shows that a snapshot is in the store.
func (t *term) published(snapshot string) {
	t.said = ""
	t.show(func(c *control.Store) { c.Snapshot, c.Error = snapshot, "" })
}

// serial returns the serial of the next head.
func (t *term) serial() int64 {
	last := t.last.serial
	if t.head != nil {
		last = max(last, t.head.Serial)
	}
	return max(last+1, time.Now().UnixMilli())
}

// step writes the bytes of the change that leads to tree, and sets Step and Whole of next. step returns the operation
// that writes the key of the step.
func (t *term) step(ctx context.Context, next *Head, tree *history.Tree) ([]clientv3.Op, error) {
	data, err := tree.Pack(t.last.tree)
	if err != nil {
		return nil, err
	}
	return t.stepOf(ctx, next, t.id(t.last.tree), data)
}

// stepOf is step with the bytes of the change, which begins at the tree base; empty for all resources.
func (t *term) stepOf(ctx context.Context, next *Head, base string, data []byte) ([]clientv3.Op, error) {
	data, err := t.cipher.encrypt(data)
	if err != nil {
		return nil, err
	}
	next.Step = Step{
		Serial: next.Serial, Base: base, Tree: next.Tree, Pack: hashOf(data), Bytes: int64(len(data)), Cipher: t.cipher.marks(),
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
		next.Whole = t.head.Whole
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

// writeWhole writes a step with all resources, and removes old steps.
func (t *term) writeWhole(ctx context.Context, next Head, tree *history.Tree) error {
	data, err := tree.Pack(nil)
	if err != nil {
		return err
	}
	next.Serial = t.serial()
	then, err := t.stepOf(ctx, &next, "", data)
	if err != nil {
		return err
	}
	if err := t.move(ctx, next, then...); err != nil {
		return err
	}
	t.last.serial = next.Serial
	return t.collect(ctx)
}

// jittered returns a duration between a half and the whole of d, so that many processes don't act at once.
func jittered(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }
