package watch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"xdspub/diag"
	"xdspub/render/publish"
	"xdspub/tools/certs"
	"xdspub/watch/control"
	"xdspub/watch/notify"
)

// TestWholeLook checks that a pass after a look at the whole source tree reads the whole output directory. A
// rescan during a burst of events has no signal of its own.
func TestWholeLook(t *testing.T) {
	s := newSite(t, web)
	w := watchingOf(t, s)
	turn := func(reason string) {
		t.Helper()
		if _, err := w.turn(t.Context(), reason); err != nil {
			t.Fatal(err)
		}
	}
	turn(starting)
	clusters := filepath.Join(s.o.Out, "cds", "cds.json")
	if err := os.Remove(clusters); err != nil {
		t.Fatal(err)
	}
	w.source.unread.All = true
	turn(string(notify.Change))
	if _, err := os.Stat(clusters); err != nil {
		t.Errorf("after a look at the whole tree: %v", err)
	}
}

// TestRescanOfWrongTree checks that a rescan of an invalid tree trusts nothing in the output directory. The
// next valid edit restores removed files.
func TestRescanOfWrongTree(t *testing.T) {
	s := newSite(t, web)
	w := watchingOf(t, s)
	turn := func(reason, text string) {
		t.Helper()
		s.write(text)
		if _, err := w.turn(t.Context(), reason); err != nil {
			t.Fatal(err)
		}
	}
	turn(starting, web)
	clusters := filepath.Join(s.o.Out, "cds", "cds.json")
	if err := os.Remove(clusters); err != nil {
		t.Fatal(err)
	}
	turn(string(notify.Rescan), wrong)
	w.source.unread.Paths = []string{filepath.Join(s.o.Source.Path, "web.yaml")}
	turn(string(notify.Change), web)
	if _, err := os.Stat(clusters); err != nil {
		t.Errorf("after the edit: %v", err)
	}
}

// watchingOf returns a watching of s that takes no turn by itself.
func watchingOf(t *testing.T, s *site) *watching {
	t.Helper()
	w := newWatching(newSource([]Options{s.o}, WatchOptions{}), s.o)
	t.Cleanup(w.Close)
	var err error
	if w.source.watcher, err = watchTree(t.Context(), s.o.Source.Path, notify.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ended, end := context.WithCancel(context.Background())
		end()
		w.source.watcher.Run(ended) // frees the resources of New
	})
	if err := w.Open(); err != nil {
		t.Fatal(err)
	}
	return w
}

// TestRescanOfNothing checks that a rescan ends early only if nothing has changed, and repairs any change of
// the output directory.
func TestRescanOfNothing(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *site, w *watching) error
		early  bool
	}{
		"nothing":           {func(*site, *watching) error { return nil }, true},
		"an edit":           {func(s *site, _ *watching) error { s.write(other); return nil }, false},
		"a damaged file":    {func(s *site, _ *watching) error { return os.Truncate(filepath.Join(s.o.Out, "cds/cds.json"), 1) }, false},
		"a removed file":    {func(s *site, _ *watching) error { return os.Remove(filepath.Join(s.o.Out, "lds/lds.json")) }, false},
		"a removed record":  {func(s *site, _ *watching) error { return os.Remove(filepath.Join(s.o.Out, ".xdspub/manifest.json")) }, false},
		"a removed OUT":     {func(s *site, _ *watching) error { return os.RemoveAll(s.o.Out) }, false},
		"an expired date":   {func(_ *site, w *watching) error { w.idlePass.findings = diag.List{{Code: "x"}}; return nil }, false},
		"other options":     {func(_ *site, w *watching) error { w.source.tree = Tree(w.source.all); return nil }, false},
		"a watch that ends": {func(_ *site, w *watching) error { return w.draining(time.Hour) }, false},
		"our own record":    {func(_ *site, w *watching) error { return w.draining(0) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, web)
			s.o.TrimDelay = 10 * time.Minute
			w := watchingOf(t, s)
			rescan := func() {
				t.Helper()
				w.source.unread.All = true
				if _, err := w.turn(t.Context(), string(notify.Rescan)); err != nil {
					t.Fatal(err)
				}
			}
			rescan()
			rescan() // this rescan finds nothing
			if err := c.change(s, w); err != nil {
				t.Fatal(err)
			}
			w.source.unread.All = true
			found, err := w.source.look(t.Context(), w, w.source.want(string(notify.Rescan)))
			if err != nil {
				t.Fatal(err)
			}
			w.Trust(false)
			if early := w.isIdle(w.take(found)); early != c.early {
				t.Errorf("it ends early: %t", early)
			}
			rescan()
			for _, file := range []string{"cds/cds.json", "lds/lds.json", ".xdspub/manifest.json"} {
				if info, err := os.Stat(filepath.Join(s.o.Out, file)); err != nil || info.Size() < 2 {
					t.Errorf("after a rescan: %s, %v", file, err)
				}
			}
		})
	}
}

// draining records a path subscription that drains since the given time.
func (w *watching) draining(since time.Duration) error {
	m, err := w.dir.Reader().Manifest()
	if err != nil {
		return err
	}
	m.DrainingWatches = []publish.DrainingWatch{{Watch: "sds cert", Since: time.Now().Add(-since)}}
	_, err = w.dir.Publish(context.Background(), publish.Plan{Manifest: m})
	return err
}

// TestTrimFails checks that the reconcile after a failed trim reads the whole output directory, because the
// trim may have removed some files.
func TestTrimFails(t *testing.T) {
	s := newSite(t, web)
	envoys := noAnswers
	s.o.Confirm = func(of publish.Refusal) publish.Confirmer { return envoys.confirmer(of) }
	w := watchingOf(t, s)
	if _, err := w.turn(t.Context(), starting); err != nil || w.state != settled {
		t.Fatal(err)
	}
	m, err := w.dir.Reader().Manifest()
	if err != nil {
		t.Fatal(err)
	}
	m.Retired = []publish.Retired{{Cluster: "web", Since: time.Now().Add(-time.Hour)}}
	if _, err := w.dir.Publish(t.Context(), publish.Plan{Manifest: m}); err != nil {
		t.Fatal(err)
	}
	envoys.confirms, envoys.fails = true, 0
	if _, err := w.turn(t.Context(), trimming); err == nil {
		t.Fatal("it did not fail")
	}
	if w.state.trusted() {
		t.Error("the next reconcile trusts what it knows")
	}
}

// TestPublishedState: the state has the first end of a certificate and the inotify instances of what is published, not
// of a tree that is refused.
func TestPublishedState(t *testing.T) {
	ca, first := certs.NewAuthority(t), time.Now().Add(30*24*time.Hour).Truncate(time.Second)
	secret := func(name string, until time.Time) string {
		cert, key := ca.SignUntil(until, 2, "localhost")
		return fmt.Sprintf("---\n{\"@type\": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret, name: %s, "+
			"tls_certificate: {certificate_chain: {inline_string: %q}, private_key: {inline_string: %q}}}\n", name, cert, key)
	}
	using := func(name string) string {
		return fmt.Sprintf("---\n{\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: c-%[1]s, connect_timeout: 1s, "+
			"transport_socket: {name: tls, typed_config: {\"@type\": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext, "+
			"sni: localhost, common_tls_context: {tls_certificate_sds_secret_configs: [{name: %[1]s, sds_config: {ads: {}}}]}}}}\n", name)
	}
	s := newSite(t, web)
	w := watchingOf(t, s)
	for _, tt := range []struct {
		name, reason, text string
		expires            time.Time
		instances          int
	}{
		{"no certificate", starting, web, time.Time{}, 2}, // of the bootstrap: CDS and LDS
		{"two certificates", string(notify.Change), web + secret("late", first.Add(time.Hour)) + using("late") + secret("soon", first) + using("soon"), first, 4},
		{"refused", string(notify.Change), web + wrong, first, 4},
		{"the first replaced", string(notify.Change), web + secret("late", first.Add(time.Hour)) + using("late"), first.Add(time.Hour), 4}, // the old cluster waits for its trim
		{"nothing to publish", hangup, web + secret("late", first.Add(time.Hour)) + using("late"), first.Add(time.Hour), 3},
		{"none left", string(notify.Change), web, time.Time{}, 3},
	} {
		s.write(tt.text)
		w.source.unread.Paths = []string{filepath.Join(s.o.Source.Path, "web.yaml")}
		if _, err := w.turn(t.Context(), tt.reason); err != nil {
			t.Fatal(err)
		}
		is := w.shown
		if !is.CertificateExpires.Equal(tt.expires) || is.Inotify == nil || *is.Inotify != (control.Inotify{Used: tt.instances, Budget: 100}) || is.Notices != control.ByEvents {
			t.Errorf("%s: %v, %+v, %s; %+v", tt.name, is.CertificateExpires, is.Inotify, is.Notices, is.Refused)
		}
	}
}
