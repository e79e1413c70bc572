package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"xdspub/diag"
	"xdspub/event"
	"xdspub/source/load"
	"xdspub/tools/certs"
	"xdspub/tools/envoytest"
	"xdspub/tools/etcdtest"
	"xdspub/xds"
)

// follower returns a running Follower, and its events.
func (h *harness) follower(o FollowerOptions) (*Follower, *events) {
	h.Helper()
	e := new(events)
	if o.Address.Prefix == "" {
		o.Options = h.options
	}
	o.Log = event.New(discard{}, e.add)
	f := NewFollower(o)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		f.Run(ctx)
		close(ended)
	}()
	h.Cleanup(func() {
		cancel()
		<-ended
	})
	return f, e
}

// until waits until the contents of a Follower have a number of resources, and returns the contents.
func until(t testing.TB, f *Follower, resources int) (c load.Contents) {
	t.Helper()
	envoytest.Eventually(t, patience, "the contents", func() (bool, string) {
		var err error
		c, err = f.Read(t.Context())
		return err == nil && len(c.Files) == resources, fmt.Sprint(len(c.Files), " ", err)
	})
	return c
}

// TestFollow: a follower has the resources of each head; the file of an unchanged resource stays the same.
func TestFollow(t *testing.T) {
	h := start(t)
	s := many(5)
	writer, _ := h.targetWriter(s)
	w := h.begin(writer)
	f, _ := h.follower(FollowerOptions{})
	h.publish(w, s)
	was := until(t, f, 5)
	if name := was.Files[0].Source.Name; name != h.options.Address.String()+"/CDS/cluster-00000" {
		t.Error(name)
	}
	h.publish(w, edited(s, 2, 7))
	envoytest.Eventually(t, patience, "later contents", func() (bool, string) {
		is, err := f.Read(t.Context())
		if err != nil || is.N == was.N {
			return false, fmt.Sprint(is.N, err)
		}
		for i, file := range is.Files {
			if same := file == was.Files[i]; same != (i >= 2) {
				t.Errorf("file %d: the same: %t", i, same)
			}
		}
		return resourcesOf(is).ID() == edited(s, 2, 7).ID(), "other resources"
	})
	if is := f.State(); !is.Connected || is.Error != "" || is.Server != h.etcd.Endpoint {
		t.Errorf("%+v", is)
	}
}

// resourcesOf returns the resources of contents.
func resourcesOf(c load.Contents) *xds.Snapshot {
	var list []*xds.Resource
	for _, file := range c.Files {
		list = append(list, file.Resources...)
	}
	return xds.NewSnapshot(list)
}

// TestTarget: a target without a head is said with its key and the known targets, and followed once it is there.
func TestTarget(t *testing.T) {
	h := start(t)
	other, _ := h.targetWriter(many(1))
	other.keys = h.options.Address.keys("us")
	h.publish(h.begin(other), many(1))
	f, said := h.follower(FollowerOptions{Target: "eu"})
	_, err := f.Read(t.Context())
	if _, none := errors.AsType[*NoTargetError](err); !none || !strings.Contains(err.Error(), "the store has no key /test/heads/eu: it has the targets us: choose one by --store-target") {
		t.Fatal(err)
	}
	said.wait(t, func(e event.Event) bool { _, failed := e.(event.StoreFailed); return failed })
	writer, _ := h.targetWriter(many(3))
	writer.keys = h.options.Address.keys("eu")
	h.publish(h.begin(writer), many(3))
	until(t, f, 3)
}

// TestAckOfUnreadableHead: a machine refuses a head that it can't read, until another head comes. A verdict on the
// resources of the machine does not end the refusal. A machine that acknowledges often keeps its lease alive, too.
func TestAckOfUnreadableHead(t *testing.T) {
	t.Parallel()
	h := start(t)
	writer, _ := h.targetWriter(many(2))
	w := h.begin(writer)
	h.publish(w, many(2))
	f, _ := h.follower(FollowerOptions{Machine: "a", Acknowledge: true})
	n := until(t, f, 2).N
	f.Judged(load.Judgement{N: n, Accepted: true})
	h.untilMachines(map[string]Standing{"a": InSync})
	unreadable := *w.head
	unreadable.Serial++
	unreadable.Tree, unreadable.Step.Tree = strings.Repeat("0", 64), strings.Repeat("0", 64)
	unreadable.Step.Base = strings.Repeat("1", 64)
	if err := w.move(t.Context(), unreadable); err != nil {
		t.Fatal(err)
	}
	h.untilMachines(map[string]Standing{"a": Broken})
	f.Judged(load.Judgement{N: n, Accepted: true}) // as a rescan does
	f.acks.mu.Lock()
	is := f.acks.wanted
	f.acks.mu.Unlock()
	if is.State != Refused || is.Serial != unreadable.Serial || is.Message == "" || is.Snapshot != many(2).ID() {
		t.Errorf("after a rescan: %+v", is)
	}

	kv, _, err := h.client.get(t.Context(), f.acks.key())
	if err != nil || kv == nil {
		t.Fatal(kv, err)
	}
	was := int64(0)
	envoytest.Eventually(t, patience, "a beat", func() (bool, string) {
		select {
		case f.acks.news <- struct{}{}:
		default:
		}
		ttl, err := h.client.etcd.TimeToLive(t.Context(), clientv3.LeaseID(kv.Lease))
		if err != nil {
			return false, err.Error()
		}
		renewed := was != 0 && ttl.TTL > was
		was = ttl.TTL
		return renewed, fmt.Sprint(was)
	})
	h.publish(w, many(3))
	f.Judged(load.Judgement{N: until(t, f, 3).N, Accepted: true})
	h.untilMachines(map[string]Standing{"a": InSync})
}

// TestAcks: acknowledgements tell machines in sync from machines that are behind, refuse the head, or are silent.
func TestAcks(t *testing.T) {
	t.Parallel()
	h := start(t)
	writer, _ := h.targetWriter(many(2))
	w := h.begin(writer)
	h.publish(w, many(2))
	follow := func(name string) *Follower {
		f, _ := h.follower(FollowerOptions{Machine: name, Acknowledge: true, Version: "1"})
		f.Judged(load.Judgement{N: until(t, f, 2).N, Accepted: true})
		return f
	}
	a, b := follow("a"), follow("b")
	follow("c")
	h.untilMachines(map[string]Standing{"a": InSync, "b": InSync, "c": InSync})
	h.publish(w, many(3))
	b.Judged(load.Judgement{N: until(t, b, 3).N, Findings: diag.List{{Message: "no such cluster"}}})
	a.Judged(load.Judgement{N: until(t, a, 3).N, Accepted: true})
	r := h.untilMachines(map[string]Standing{"a": InSync, "b": Broken, "c": Behind})
	if m := r.Targets[0].Machines[1]; m.Message != "no such cluster" || m.Snapshot != many(2).ID() || r.InSync {
		t.Errorf("%+v", m)
	}
	kv, _, err := h.client.get(t.Context(), h.options.Address.keys("").machines()+"c")
	if err != nil {
		t.Fatal(err)
	}
	m := machineIn(kv, h.options.Address.keys(""))
	for silent, want := range map[int64]Standing{90: Behind, 91: Silent} {
		if m.Silent = silent; m.standing(*w.head) != want {
			t.Errorf("silent for %d s: not %s", silent, want)
		}
	}
	if ttl, err := h.client.etcd.TimeToLive(t.Context(), clientv3.LeaseID(kv.Lease)); err != nil || ttl.GrantedTTL != int64(rememberFor/time.Second) {
		t.Errorf("%+v: %v", ttl, err)
	}
}

// TestAckPause: a session of an acknowledger that has written its key makes the next pause short. A session that
// reaches no etcd does not.
func TestAckPause(t *testing.T) {
	t.Parallel()
	h := start(t)
	writer, _ := h.targetWriter(many(1))
	h.publish(h.begin(writer), many(1))
	f := NewFollower(FollowerOptions{Options: h.options, Machine: "a"})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	written := false
	if err := f.acks.session(ctx, func() { written = true; cancel() }); err != nil || !written {
		t.Errorf("written: %t, %v", written, err)
	}
	way := newProxy(t, h.etcd.Endpoint)
	way.cut()
	f.options.Address.Endpoints = []string{way.address}
	ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := f.acks.session(ctx, func() { t.Error("the session has written nothing") }); err == nil {
		t.Error("no error")
	}
}

// untilMachines waits until the machines stand to the head as given.
func (h *harness) untilMachines(want map[string]Standing) (r Report) {
	h.Helper()
	envoytest.Eventually(h, patience, "the machines", func() (bool, string) {
		var err error
		if r, err = Ask(h.Context(), h.options, ""); err != nil {
			return false, err.Error()
		}
		ok := len(r.Targets[0].Machines) == len(want)
		for _, m := range r.Targets[0].Machines {
			ok = ok && want[m.Name] == m.Standing
		}
		return ok, fmt.Sprintf("%+v", r)
	})
	return r
}

// TestCutOff: a follower that is cut off keeps what it has, says so, and has the head once the way is free again, even
// if the etcd was compacted meanwhile, and if the writer has removed the steps.
func TestCutOff(t *testing.T) {
	t.Parallel()
	h := start(t)
	writer, _ := h.targetWriter(many(4))
	w := h.begin(writer)
	h.publish(w, many(4))
	way := newProxy(t, h.etcd.Endpoint)
	o := h.options
	o.Address.Endpoints = []string{way.address}
	f, said := h.follower(FollowerOptions{Options: o})
	until(t, f, 4)
	way.cut()
	envoytest.Eventually(t, 2*patience, "the follower says that it is cut off", func() (bool, string) {
		is := f.State()
		return !is.Connected && strings.Contains(is.Error, "no server answers"), fmt.Sprintf("%+v", is)
	})
	if ago := time.Since(f.State().Since); ago < requestTime-time.Second {
		t.Errorf("cut off since %v: the follower counts from its next request, not from the loss", ago)
	}
	said.wait(t, func(e event.Event) bool { _, failed := e.(event.StoreFailed); return failed })
	if c, err := f.Read(t.Context()); err != nil || len(c.Files) != 4 {
		t.Errorf("cut off: %d files, %v", len(c.Files), err)
	}
	for i := range 150 { // steps with all resources come in between
		h.publish(w, edited(many(4), 4, i+1))
	}
	h.publish(w, many(6))
	if _, err := h.client.etcd.Compact(t.Context(), w.moved); err != nil {
		t.Fatal(err)
	}
	way.free()
	until(t, f, 6)
}

// TestWaitLost: a client learns of the loss of its connection at once, and not from its next request.
func TestWaitLost(t *testing.T) {
	t.Parallel()
	h := start(t)
	way := newProxy(t, h.etcd.Endpoint)
	o := h.options
	o.Address.Endpoints = []string{way.address}
	c, err := connect(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if _, _, err := c.get(t.Context(), "/a"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	time.AfterFunc(50*time.Millisecond, way.cut)
	if c.waitLost(ctx); ctx.Err() != nil {
		t.Error("the client has not learned of the loss")
	}
}

// TestCompacted: a watch from a revision that was compacted ends, and the head is read anew.
func TestCompacted(t *testing.T) {
	h := start(t)
	writer, _ := h.targetWriter(many(1))
	w := h.begin(writer)
	h.publish(w, many(1))
	old := w.moved
	h.publish(w, many(2))
	if _, err := h.client.etcd.Compact(t.Context(), w.moved); err != nil {
		t.Fatal(err)
	}
	f := NewFollower(FollowerOptions{Options: h.options})
	if err := f.watch(t.Context(), h.client, old-1); !errors.Is(err, errWatch) || !strings.Contains(err.Error(), "compacted") {
		t.Error(err)
	}
	if _, err := f.look(t.Context(), h.client); err != nil {
		t.Fatal(err)
	}
	until(t, f, 2)
}

// TestRestored: after the restore of a backup, the revision of the store and its head are older. A follower keeps what
// it has, says so, and follows the next head.
func TestRestored(t *testing.T) {
	t.Parallel()
	h := start(t)
	writer, _ := h.targetWriter(many(2))
	stop := running(t, writer)
	defer stop()
	h.untilHead(2)
	f, said := h.follower(FollowerOptions{})
	until(t, f, 2)
	backup := filepath.Join(t.TempDir(), "backup")
	h.etcd.End(t)
	if err := os.CopyFS(backup, os.DirFS(h.etcd.Dir)); err != nil {
		t.Fatal(err)
	}
	h.etcd.Run(t)
	for n := range 3 {
		writer.wanted.Store(many(3 + n))
		writer.news <- struct{}{}
		h.untilHead(3 + n)
	}
	until(t, f, 5)
	stop() // the writer is down
	h.etcd.End(t)
	if err := os.RemoveAll(h.etcd.Dir); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(h.etcd.Dir, os.DirFS(backup)); err != nil {
		t.Fatal(err)
	}
	h.etcd.Run(t)
	said.wait(t, func(e event.Event) bool { _, back := e.(event.StoreWentBack); return back })
	if c, err := f.Read(t.Context()); err != nil || len(c.Files) != 5 {
		t.Errorf("after the restore: %d files, %v", len(c.Files), err)
	}
	next, _ := h.targetWriter(many(2)) // the same resources as the restored head
	h.publish(h.begin(next), many(2))
	until(t, f, 2)
}

// TestDamagedForFollower: bytes with a wrong hash are said with their key, and what the follower has stays.
func TestDamagedForFollower(t *testing.T) {
	t.Parallel()
	h := start(t)
	writer, _ := h.targetWriter(many(2))
	w := h.begin(writer)
	h.publish(w, many(2))
	f, said := h.follower(FollowerOptions{})
	until(t, f, 2)
	next, serial := *w.head, w.serial()
	next.Serial, next.Step.Serial, next.Whole = serial, serial, serial
	next.Step.Base, next.Step.Tree, next.Tree = "", strings.Repeat("ab", 32), strings.Repeat("ab", 32)
	next.Step.Pack = strings.Repeat("cd", 32)
	if _, err := h.client.etcd.Put(t.Context(), w.keys.chunk(next.Step.Pack, 0), strings.Repeat("x", int(next.Step.Bytes))); err != nil {
		t.Fatal(err)
	}
	if err := w.move(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	said.wait(t, func(e event.Event) bool {
		failed, ok := e.(event.StoreFailed)
		return ok && strings.Contains(failed.Error.Error(), w.keys.chunk(next.Step.Pack, 0)+" is damaged: the hash of its bytes is wrong")
	})
	if c, err := f.Read(t.Context()); err != nil || len(c.Files) != 2 {
		t.Errorf("%d files, %v", len(c.Files), err)
	}
	is := f.State()
	if !is.Connected || !strings.Contains(is.Error, "the hash of its bytes is wrong") || is.StaleSince().IsZero() {
		t.Errorf("the state is %+v", is)
	}
	h.etcd.End(t)
	envoytest.Eventually(t, patience, "the follower notices that the etcd is gone", func() (bool, string) {
		return !f.State().Connected, fmt.Sprintf("%+v", f.State())
	})
	if gone := f.State(); !gone.StaleSince().Equal(is.StaleSince()) {
		t.Errorf("stale since %v, then since %v", is.StaleSince(), gone.StaleSince())
	}
	h.etcd.Run(t)
	h.publish(w, many(3))
	until(t, f, 3)
	envoytest.Eventually(t, patience, "the follower follows", func() (bool, string) {
		return f.State().StaleSince().IsZero(), fmt.Sprintf("%+v", f.State())
	})
}

// TestDamagedHead: status shows the other targets beside a target with a damaged head. The machines of the damaged head
// are not in sync.
func TestDamagedHead(t *testing.T) {
	t.Parallel()
	h := start(t)
	for _, target := range []string{"eu", "us"} {
		writer, _ := h.targetWriter(many(2))
		writer.keys = h.options.Address.keys(target)
		h.publish(h.begin(writer), many(2))
		f, _ := h.follower(FollowerOptions{Target: target, Machine: "m-" + target, Acknowledge: true})
		f.Judged(load.Judgement{N: until(t, f, 2).N, Accepted: true})
	}
	var r Report
	envoytest.Eventually(t, patience, "both machines are in sync", func() (bool, string) {
		var err error
		r, err = Ask(t.Context(), h.options, "")
		return err == nil && r.InSync && len(r.Targets[0].Machines)+len(r.Targets[1].Machines) == 2, fmt.Sprintf("%+v %v", r, err)
	})
	if _, err := h.client.etcd.Put(t.Context(), h.options.Address.keys("eu").head(), "nonsense"); err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{"", "eu"} {
		r, err := Ask(t.Context(), h.options, target)
		if err != nil {
			t.Fatal(err)
		}
		eu := r.Targets[0]
		if r.InSync || eu.Target != "eu" || !strings.Contains(eu.Error, "the key /test/heads/eu holds something else") || eu.Machines[0].Standing != Behind {
			t.Errorf("%+v", r)
		}
		if target == "" && (r.Targets[1].Error != "" || r.Targets[1].Machines[0].Standing != InSync) {
			t.Errorf("the other target: %+v", r.Targets[1])
		}
	}
}

// TestRoles: as the user of a password or of a client certificate, a follower reads its encrypted target by TLS, and
// acknowledges. The user reads no key of another target, such as its secrets, writes no other key, and can't end the
// lease of the writer.
func TestRoles(t *testing.T) {
	t.Parallel()
	ca := certs.NewAuthority(t)
	_, file := files(t)
	cert, key := ca.Sign(2, "127.0.0.1")
	own, secret := ca.Sign(3, "m1")
	byCert := Options{CA: file("ca.pem", ca.PEM()), Cert: file("m1.pem", own), Key: file("m1.key", secret)}
	admin, secret := ca.Sign(4, "admin")
	h := startSecure(t, byCert.CA, file("cert.pem", cert), file("key.pem", key), file("admin.pem", admin), file("admin.key", secret))
	age, _ := identity(t)
	h.options.AgeKeys = keyFile(t, age)
	for _, target := range []string{"web", "pay"} {
		writer, _ := h.targetWriter(many(2))
		writer.keys = h.options.Address.keys(target)
		h.publish(h.begin(writer), many(2))
	}
	pack := func(target string) string {
		kv, _, err := h.client.get(t.Context(), h.options.Address.keys(target).head())
		if err != nil {
			t.Fatal(err)
		}
		head, err := parseHead("", kv.Value)
		if err != nil {
			t.Fatal(err)
		}
		return head.Step.Pack
	}(("pay"))
	kv, _, err := h.client.get(t.Context(), h.options.Address.keys("web").writer())
	if err != nil || kv == nil {
		t.Fatal(kv, err)
	}
	lease := clientv3.LeaseID(kv.Lease)
	h.grant("web", "m1")
	byCert.Address, byCert.AgeKeys = h.options.Address, h.options.AgeKeys
	g, _ := h.follower(FollowerOptions{Options: byCert, Target: "web"})
	until(t, g, 2)
	_, denied := h.follower(FollowerOptions{Options: byCert, Target: "pay"})
	o := h.options
	o.User, o.Password = "m1", file("password", []byte("secret\n"))
	f, _ := h.follower(FollowerOptions{Options: o, Target: "web", Machine: "m1", Acknowledge: true})
	f.Judged(load.Judgement{N: until(t, f, 2).N, Accepted: true})
	c, err := connect(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if _, err := c.etcd.Revoke(t.Context(), lease); !isDenied(err) {
		t.Errorf("end the lease of the writer: %v", err)
	}
	pay, web := h.options.Address.keys("pay"), h.options.Address.keys("web")
	for _, key := range []string{pay.head(), pay.step(1), pay.chunk(pack, 0), pay.machines() + "m1", web.machines() + "m2"} {
		if _, _, err := c.get(t.Context(), key); !isDenied(err) {
			t.Errorf("read %s: %v", key, err)
		}
	}
	for _, key := range []string{web.head(), web.writer(), web.chunk("a", 0), web.machines() + "m2", "/other"} {
		if _, _, err := c.commit(t.Context(), nil, clientv3.OpPut(key, "x")); !isDenied(err) {
			t.Errorf("write %s: %v", key, err)
		}
	}
	var r Report
	envoytest.Eventually(t, patience, "the acknowledgement", func() (bool, string) {
		r, err = Ask(t.Context(), h.root(file("root", []byte("root"))), "web")
		return err == nil && len(r.Targets[0].Machines) == 1 && r.Targets[0].Machines[0].Standing == InSync, fmt.Sprintf("%+v %v", r, err)
	})
	if kv, _, err = c.get(t.Context(), web.machines()+"m1"); err != nil {
		t.Fatal(err)
	}
	if err := c.beat(t.Context(), clientv3.LeaseID(kv.Lease)); err != nil {
		t.Errorf("the user can't keep the lease alive: %v", err)
	}
	wrong := o
	wrong.Password = file("wrong", []byte("x"))
	if _, err := connect(t.Context(), wrong); err == nil || !strings.Contains(err.Error(), "the etcd does not know the user, or the password is wrong") {
		t.Error(err)
	}
	denied.wait(t, func(e event.Event) bool {
		failed, ok := e.(event.StoreFailed)
		return ok && strings.Contains(failed.Error.Error(), "the user may not do this: grant the user a role with the key")
	})
}

func isDenied(err error) bool {
	return err != nil && strings.Contains(err.Error(), "permission denied")
}

// startSecure starts an etcd with TLS, for clients with a certificate. own and ownKey are of the test.
func startSecure(t *testing.T, ca, cert, key, own, ownKey string) *harness {
	t.Helper()
	h := &harness{T: t}
	h.etcd = etcdtest.Start(t, "--cert-file="+cert, "--key-file="+key, "--client-cert-auth", "--trusted-ca-file="+ca)
	a, err := ParseAddress(Scheme + h.etcd.Endpoint + "/test")
	if err != nil {
		t.Fatal(err)
	}
	h.options = Options{Address: a, CA: ca, Cert: own, Key: ownKey}
	if h.client, err = connect(t.Context(), h.options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.client.close)
	return h
}

// grant turns on the users of the etcd, and lets a user follow a target.
func (h *harness) grant(target, user string) {
	h.Helper()
	c, ctx, k := h.client.etcd, h.Context(), h.options.Address.keys(target)
	read, write := clientv3.PermissionType(clientv3.PermRead), clientv3.PermissionType(clientv3.PermReadWrite)
	var errs []error
	do := func(_ any, err error) { errs = append(errs, err) }
	do(c.UserAdd(ctx, "root", "root"))
	do(c.UserGrantRole(ctx, "root", "root"))
	do(c.RoleAdd(ctx, user))
	do(c.RoleGrantPermission(ctx, user, k.head(), "", read))
	for _, prefix := range []string{k.of("steps") + "/", k.objects()} {
		do(c.RoleGrantPermission(ctx, user, prefix, clientv3.GetPrefixRangeEnd(prefix), read))
	}
	do(c.RoleGrantPermission(ctx, user, k.machines()+user, "", write))
	do(c.UserAdd(ctx, user, "secret"))
	do(c.UserGrantRole(ctx, user, user))
	do(c.AuthEnable(ctx))
	if err := errors.Join(errs...); err != nil {
		h.Fatal(err)
	}
}

// root returns the options of the user root.
func (h *harness) root(password string) Options {
	o := h.options
	o.User, o.Password = "root", password
	return o
}

// proxy is the way from a follower to a server, which can be cut.
type proxy struct {
	address string
	server  string

	mu    sync.Mutex
	isCut bool
	conns map[net.Conn]bool
}

func newProxy(t *testing.T, server string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{address: l.Addr().String(), server: server, conns: make(map[net.Conn]bool)}
	t.Cleanup(func() {
		l.Close()
		p.cut()
	})
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(c)
		}
	}()
	return p
}

func (p *proxy) serve(c net.Conn) {
	defer c.Close()
	s, err := net.Dial("tcp", p.server)
	if err != nil {
		return
	}
	defer s.Close()
	p.mu.Lock()
	if p.isCut {
		p.mu.Unlock()
		return
	}
	p.conns[c] = true
	p.mu.Unlock()
	go func() {
		_, _ = io.Copy(s, c)
		s.Close()
	}()
	_, _ = io.Copy(c, s)
}

func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.isCut = true
	for c := range p.conns {
		c.Close()
	}
	clear(p.conns)
}

func (p *proxy) free() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.isCut = false
}

// TestPartition: a node of three that has lost the two others does not answer. A follower of that node says so, and
// keeps what it has. A follower that knows all nodes goes on by the others. A writer without a majority moves no head.
func TestPartition(t *testing.T) {
	t.Parallel()
	nodes := etcdtest.StartCluster(t, 3)
	var endpoints []string
	for _, s := range nodes {
		endpoints = append(endpoints, s.Endpoint)
	}
	h := &harness{T: t, options: Options{Address: Address{Endpoints: endpoints, Prefix: "/test"}}}
	var err error
	if h.client, err = connect(t.Context(), h.options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.client.close)
	writer, _ := h.targetWriter(many(2))
	defer running(t, writer)()
	alone := h.options
	alone.Address.Endpoints = endpoints[:1]
	one, said := h.follower(FollowerOptions{Options: alone})
	all, _ := h.follower(FollowerOptions{})
	until(t, one, 2)
	until(t, all, 2)
	for _, s := range nodes[1:] { // as a partition does
		s.Signal(t, syscall.SIGSTOP)
	}
	said.wait(t, func(e event.Event) bool {
		failed, ok := e.(event.StoreFailed)
		return ok && strings.Contains(failed.Error.Error(), "no server answers: see whether the etcd has a leader")
	})
	writer.wanted.Store(many(3))
	writer.news <- struct{}{}
	if c, err := one.Read(t.Context()); err != nil || len(c.Files) != 2 {
		t.Errorf("%d files, %v", len(c.Files), err)
	}
	nodes[1].Signal(t, syscall.SIGCONT)
	nodes[0].Signal(t, syscall.SIGSTOP) // the node that the others have lost
	nodes[2].Signal(t, syscall.SIGCONT)
	until(t, all, 3)
	nodes[0].Signal(t, syscall.SIGCONT)
	until(t, one, 3)
}
