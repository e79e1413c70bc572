package watch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"xdspub/render/history"
	"xdspub/render/publish"
	"xdspub/tools/certs"
	"xdspub/watch/control"
)

// third is a source tree that differs from web and other.
const third = "\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\nname: third\n"

var back = control.Rollback{By: "alice@host", Reason: "a test"}

// newPastSite returns a site with a history, and a watching that has published web and then other.
func newPastSite(t *testing.T) (*site, *watching) {
	t.Helper()
	s := newSite(t, web)
	s.o.History = history.Options{Keep: 50}
	s.o.TrimDelay = time.Hour
	w := watchingOf(t, s)
	w.turnTo(t, s, web)
	w.turnTo(t, s, other)
	return s, w
}

// clustersOut returns the names of the clusters web, other and third that are in the output directory and not retired.
func clustersOut(t *testing.T, s *site) string {
	t.Helper()
	m, err := publish.ReadManifest(s.o.Out)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(s.o.Out, "cds", "cds.json"))
	if err != nil {
		t.Fatal(err)
	}
	retired := make(map[string]bool)
	for _, r := range m.Retired {
		retired[r.Cluster] = true
	}
	var names []string
	for _, name := range []string{"web", "other", "third"} {
		if strings.Contains(string(data), fmt.Sprintf("%q", name)) && !retired[name] {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

func isPublished(t *testing.T, s *site, want string) {
	t.Helper()
	if is := clustersOut(t, s); is != want {
		t.Errorf("%q is published, want %q", is, want)
	}
}

// TestRollback checks the life of a pin: a rollback publishes the entry before, the source tree waits in this process
// and in the next one, and a change of the tree ends the pin.
func TestRollback(t *testing.T) {
	s, w := newPastSite(t)
	r := execute(t, w, back)
	if r.Outcome != control.Published || r.Pinned == nil || r.Pinned.By != "alice@host" || !strings.HasPrefix(r.Message, "rolled back to entry ") {
		t.Errorf("%+v", r)
	}
	isPublished(t, s, "web")
	if w.shown.Pinned == nil || w.shown.Pinned.Entry != r.Pinned.Entry {
		t.Errorf("it shows %+v", w.shown.Pinned)
	}
	if r := w.turnTo(t, s, other); r.Outcome != control.Waiting || !strings.Contains(r.Message, " is pinned to entry ") {
		t.Errorf("the source tree: %+v", r)
	}
	if r := w.turnTo(t, s, wrong); r.Outcome != control.Refused {
		t.Errorf("an invalid source tree: %+v", r)
	}
	if err := os.Remove(filepath.Join(s.o.Out, "cds", "cds.json")); err != nil {
		t.Fatal(err)
	}
	w.turnTo(t, s, other)
	isPublished(t, s, "web") // mended
	w.Close()

	once := New(s.o)
	if err := errors.Join(once.Open(), once.Prepare(t.Context())); err != nil || !strings.Contains(once.Waits(), "a test") {
		t.Errorf("%q, %v", once.Waits(), err)
	}
	once.Close()
	next := watchingOf(t, s)
	next.turnTo(t, s, other)
	isPublished(t, s, "web")
	if next.shown.Waits == nil {
		t.Error("nothing waits")
	}
	if r := next.turnTo(t, s, third); r.Outcome != control.Published {
		t.Errorf("a change: %+v", r)
	}
	isPublished(t, s, "third")
	if next.shown.Pinned != nil || next.shown.Waits != nil {
		t.Errorf("after the change it shows %+v, %+v", next.shown.Pinned, next.shown.Waits)
	}
	next.turnTo(t, s, other)
	isPublished(t, s, "other")
}

// TestRollbackAgain checks which entry is the one before, and that a resume publishes the source tree.
func TestRollbackAgain(t *testing.T) {
	s, w := newPastSite(t)
	w.turnTo(t, s, third)
	for _, want := range []string{"other", "web"} {
		execute(t, w, back)
		isPublished(t, s, want)
	}
	if _, err := w.execute(t.Context(), back); err == nil || !strings.Contains(err.Error(), "no entry before") {
		t.Errorf("at the first entry: %v", err)
	}
	isPublished(t, s, "web")
	if r := w.turnTo(t, s, third); r.Outcome != control.Waiting {
		t.Errorf("%+v", r)
	}
	if r := execute(t, w, control.Resume{By: "bob@host"}); r.Outcome != control.Published {
		t.Errorf("%+v", r)
	}
	isPublished(t, s, "third")
	h := read(t, s)
	outcomes := make(map[string]int)
	for _, i := range h.Items() {
		outcomes[fmt.Sprintf("%s %s", i.Command, i.Outcome())]++
	}
	if outcomes["rollback unconfirmed"] != 2 || outcomes[" rolled back"] != 1 || outcomes[" unconfirmed"] != 3 {
		t.Errorf("the history has %v", outcomes)
	}
}

func read(t *testing.T, s *site) *history.History {
	t.Helper()
	h, err := history.Read(s.o.Out)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

// TestRollbackWhilePaused checks that a rollback is possible during a pause, and that only a resume ends the pin then.
func TestRollbackWhilePaused(t *testing.T) {
	s, w := newPastSite(t)
	execute(t, w, pause)
	execute(t, w, back)
	isPublished(t, s, "web")
	if r := w.turnTo(t, s, third); r.Outcome != control.Waiting || !strings.Contains(r.Message, "is paused") {
		t.Errorf("a change: %+v", r)
	}
	isPublished(t, s, "web")
	execute(t, w, control.Resume{By: "bob@host"})
	isPublished(t, s, "third")
}

// TestRollbackNames checks the ways to name an entry, and the answers to names that no entry has.
func TestRollbackNames(t *testing.T) {
	s, w := newPastSite(t)
	items := read(t, s).Items()
	first, last := items[1], items[0]
	with := func(change func(*control.Rollback)) control.Rollback {
		asked := back
		change(&asked)
		return asked
	}
	for name, c := range map[string]struct {
		asked control.Rollback
		want  string
	}{
		"unknown":     {with(func(r *control.Rollback) { r.Entry = "0123456789ab" }), `the history has no entry "0123456789ab"`},
		"too short":   {with(func(r *control.Rollback) { r.Entry = first.ID[:3] }), "is too short"},
		"before":      {with(func(r *control.Rollback) { r.At = first.Time.Add(-time.Hour) }), "the history begins at"},
		"no commit":   {with(func(r *control.Rollback) { r.Revision = "deadbeef" }), `the history has no entry "deadbeef"`},
		"no reason":   {with(func(r *control.Rollback) { r.Reason = "" }), "the reason is empty"},
		"nobody":      {with(func(r *control.Rollback) { r.By = "" }), "the name is empty"},
		"a long name": {with(func(r *control.Rollback) { r.By = strings.Repeat("x", 2000) }), "the name has 2000 bytes"},
	} {
		_, err := w.execute(t.Context(), c.asked)
		if conflict, ok := errors.AsType[*control.ConflictError](err); !ok || !strings.Contains(conflict.Reason, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	isPublished(t, s, "other")
	execute(t, w, with(func(r *control.Rollback) { r.Entry = first.ID[:6] }))
	isPublished(t, s, "web")
	execute(t, w, with(func(r *control.Rollback) { r.At = last.Time }))
	isPublished(t, s, "other")
	execute(t, w, with(func(r *control.Rollback) { r.At = last.Time.Add(-time.Nanosecond) }))
	isPublished(t, s, "web")
}

// TestRollbackRefusals checks entries that can't be published: damaged ones, and ones of another form. Nothing changes.
func TestRollbackRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t *testing.T, s *site, w *watching, first history.Item)
		want  string
	}{
		"tampered with": {func(t *testing.T, s *site, _ *watching, first history.Item) {
			files, err := filepath.Glob(filepath.Join(s.o.Out, ".xdspub", "history", "*-"+first.ID+".entry"))
			if err != nil || len(files) != 1 {
				t.Fatal(files, err)
			}
			data, err := os.ReadFile(files[0])
			if err == nil {
				data[len(data)/2] ^= 1
				err = os.WriteFile(files[0], data, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}, "the file is damaged"},
		"another format": {func(t *testing.T, _ *site, w *watching, first history.Item) {
			enter(t, w, first, func(e *history.Entry) { e.Format = "yaml" })
		}, "was published in the format yaml"},
		"another path": {func(t *testing.T, _ *site, w *watching, first history.Item) {
			enter(t, w, first, func(e *history.Entry) { e.EnvoyPath = "/elsewhere" })
		}, "was published for Envoys that read /elsewhere"},
		"another layout": {func(t *testing.T, _ *site, w *watching, first history.Item) {
			enter(t, w, first, func(e *history.Entry) { e.Layout = 99 })
		}, "has the layout 99"},
	} {
		t.Run(name, func(t *testing.T) {
			s, w := newPastSite(t)
			first := read(t, s).Items()[1]
			c.spoil(t, s, w, first)
			asked := back
			if asked.Entry = first.ID; !strings.HasPrefix(name, "tampered") {
				asked.Entry = read(t, s).Items()[0].ID
			}
			before := filesOf(t, s.o.Out)
			_, err := w.execute(t.Context(), asked)
			if conflict, ok := errors.AsType[*control.ConflictError](err); !ok || !strings.Contains(conflict.Reason, c.want) {
				t.Errorf("%v", err)
			}
			if filesOf(t, s.o.Out) != before || w.decisions.Pinned != nil {
				t.Error("something has changed")
			}
		})
	}
}

// enter records the resources of an entry once more, with a change of its description.
func enter(t *testing.T, w *watching, first history.Item, change func(*history.Entry)) {
	t.Helper()
	h, err := history.Read(w.dir.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	resources, err := h.Load(first.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	e := history.Entry{Time: time.Now(), Snapshot: "v0", Format: first.Format, EnvoyPath: first.EnvoyPath, Outcome: history.Unconfirmed}
	change(&e)
	if _, err := history.Open(w.dir, history.Options{}).Record(e, resources); err != nil {
		t.Fatal(err)
	}
}

// TestRollbackSecrets checks that a rollback leaves secrets alone, even later, unless somebody asks for the old ones.
func TestRollbackSecrets(t *testing.T) {
	s := newSite(t, web)
	s.o.History = history.Options{Keep: 50}
	ca, lines := certs.NewAuthority(t), make(map[string]string) // lines has a line of each certificate
	secret := func(name string) string {
		cert, key := ca.Sign(int64(len(lines)+2), "localhost")
		text := strings.Split(strings.TrimSpace(string(cert)), "\n")
		lines[name] = text[len(text)-3] // of the signature
		return fmt.Sprintf("---\n{\"@type\": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret, name: pair, "+
			"tls_certificate: {certificate_chain: {inline_string: %q}, private_key: {inline_string: %q}}}\n"+
			"---\n{\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: user, connect_timeout: 1s, "+
			"transport_socket: {name: tls, typed_config: {\"@type\": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext, "+
			"sni: localhost, common_tls_context: {tls_certificate_sds_secret_configs: [{name: pair, sds_config: {ads: {}}}]}}}}\n", cert, key)
	}
	w := watchingOf(t, s)
	with := func(cluster, name string) string { return cluster + secret(name) }
	w.turnTo(t, s, with(web, "old"))
	w.turnTo(t, s, with(other, "new"))
	has := func(name string) {
		t.Helper()
		data, err := os.ReadFile(filepath.Join(s.o.Out, "sds", "pair", "sds.json"))
		if err != nil {
			t.Fatal(err)
		}
		for of, line := range lines {
			if is := strings.Contains(string(data), line); is != (of == name) {
				t.Errorf("the secret %s is published: %t, want %s", of, is, name)
			}
		}
	}
	execute(t, w, back)
	isPublished(t, s, "web")
	has("new")
	w.turnTo(t, s, with(other, "newer"))
	isPublished(t, s, "web")
	has("newer")
	asked := back
	asked.WithSecrets = true
	asked.Entry = read(t, s).Items()[len(read(t, s).Items())-1].ID
	execute(t, w, asked)
	isPublished(t, s, "web")
	has("old")
}

// TestRollbackAlone checks a rollback of a directory into which no watch publishes.
func TestRollbackAlone(t *testing.T) {
	s, w := newPastSite(t)
	if _, err := Rollback(t.Context(), s.o, back); err == nil {
		t.Error("a rollback while a watch has locked the directory")
	} else if _, ok := errors.AsType[*publish.LockedError](err); !ok {
		t.Error(err)
	}
	w.Close()
	r, err := Rollback(t.Context(), s.o, back)
	if err != nil || r.Outcome != control.Published || r.Pinned == nil {
		t.Fatalf("%+v, %v", r, err)
	}
	isPublished(t, s, "web")
	next := watchingOf(t, s)
	if r := next.turnTo(t, s, other); r.Outcome != control.Waiting {
		t.Errorf("the next watch: %+v", r)
	}
	isPublished(t, s, "web")
}

// TestRollbackContinues checks that a process that ends between the pin and the publish leaves the rollback to the next
// one.
func TestRollbackContinues(t *testing.T) {
	s, w := newPastSite(t)
	pin, r, err := w.propose(t.Context(), back, nil)
	if err != nil || r.Outcome != "" {
		t.Fatalf("%+v, %v", r, err)
	}
	if err := w.keepPin(pin); err != nil {
		t.Fatal(err)
	}
	w.Close() // as if it were killed
	next := watchingOf(t, s)
	if r := next.turnTo(t, s, other); r.Outcome != control.Waiting {
		t.Errorf("%+v", r)
	}
	isPublished(t, s, "web")
}

// TestRollbackInvalid checks a snapshot that today's rules refuse.
func TestRollbackInvalid(t *testing.T) {
	s, w := newPastSite(t)
	enterInvalid(t, w)
	asked := back
	asked.Entry = read(t, s).Items()[0].ID
	r := execute(t, w, asked)
	if r.Outcome != control.Refused || len(r.Findings) == 0 || !strings.Contains(r.Message, "can't be published today") {
		t.Errorf("%+v", r)
	}
	isPublished(t, s, "other")
	if w.decisions.Pinned != nil {
		t.Error("it is pinned")
	}
}

// enterInvalid records a snapshot with an error.
func enterInvalid(t *testing.T, w *watching) {
	t.Helper()
	source := newSite(t, "\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\nname: web\nlb_policy: CLUSTER_PROVIDED\n")
	checked, err := Tree([]Options{source.o}).Check(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	m, err := w.dir.Reader().Manifest()
	if err != nil {
		t.Fatal(err)
	}
	e := history.Entry{Time: time.Now(), Snapshot: "v0", Format: m.Format, EnvoyPath: m.EnvoyPath, Outcome: history.Unconfirmed}
	if _, err := history.Open(w.dir, history.Options{}).Record(e, checked.Snapshot); err != nil {
		t.Fatal(err)
	}
}

// TestRollbackInterrupted checks a rollback of an interrupted change: the snapshot before the change stays published,
// and the source tree of the change waits.
func TestRollbackInterrupted(t *testing.T) {
	s, w := newPastSite(t)
	s.write(third)
	w.source.unread.All = true
	ctx, stop := context.WithCancel(t.Context())
	w.options.Confirm, w.state = func(publish.Refusal) publish.Confirmer { return stopper{stop} }, unknown
	w.Configure(w.options)
	w.turn(ctx, "change")
	m, err := publish.ReadManifest(s.o.Out)
	in, ierr := publish.ReadIntent(s.o.Out)
	if err := errors.Join(err, ierr); err != nil || in == nil || in.From != m.Snapshot {
		t.Fatalf("the change was not interrupted: %+v, %v", in, err)
	}
	w.Close()
	if r, err := Rollback(t.Context(), s.o, back); err != nil || r.Outcome != control.Published {
		t.Fatalf("%+v, %v", r, err)
	}
	isPublished(t, s, "other")
	next := watchingOf(t, s)
	if r := next.turnTo(t, s, third); r.Outcome != control.Waiting {
		t.Errorf("the source tree of the change: %+v", r)
	}
	isPublished(t, s, "other")
}

// stopper is a Confirmer that interrupts a change after its first step.
type stopper struct{ stop func() }

func (s stopper) Before(context.Context, publish.Step) error { return nil }

func (s stopper) After(context.Context, publish.Step) (bool, error) {
	s.stop()
	return false, context.Canceled
}

// TestRollbackWhileInvalid: after a rollback while the source tree is invalid, the views show both, the pin and the
// invalid tree, at once and after the next pass. A confirmation that fails shows both as well.
func TestRollbackWhileInvalid(t *testing.T) {
	s := newSite(t, web)
	s.o.History = history.Options{Keep: 50}
	w := watchingOf(t, s)
	w.turnTo(t, s, web)
	w.turnTo(t, s, other)
	w.turnTo(t, s, wrong)
	since := w.shown.Refused.Since
	if r := execute(t, w, back); r.Outcome != control.Published {
		t.Fatalf("%+v", r)
	}
	for _, when := range []string{"after the rollback", "after the next pass"} {
		r := w.shown.Refused
		if w.shown.Pinned == nil || r == nil || r.Snapshot != "" || !r.Since.Equal(since) || len(w.shown.Faults(now())) != 2 {
			t.Errorf("%s, it shows %+v, %+v, %q", when, w.shown.Pinned, r, w.shown.Faults(now()))
		}
		w.turnTo(t, s, wrong)
	}
	isPublished(t, s, "web")
	if w.turnTo(t, s, other); w.shown.Refused != nil || w.shown.Waits == nil || w.shown.Pinned == nil {
		t.Errorf("a valid tree that waits: it shows %+v, %+v", w.shown.Refused, w.shown.Waits)
	}
}
