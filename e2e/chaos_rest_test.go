package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"xdspub/diag"
	"xdspub/render/publish"
	"xdspub/tools/envoytest"
	"xdspub/watch/control"
)

// rest makes the watch and the Envoys run again, and waits until everything is as TestChaos says.
func (c *chaos) rest() {
	t := c.t
	t.Helper()
	for i, e := range c.envoys {
		switch {
		case e == nil:
			c.start(i)
		case c.stopped[i]:
			e.Signal(t, syscall.SIGCONT)
			c.stopped[i] = false
		}
	}
	c.nudge()
	id, files := c.cold()
	if w := c.settled(id); w.Refused != nil {
		t.Logf("%d: %s", c.steps, w.Refused.Message)
		for port, l := range c.busy {
			l.Close()
			delete(c.busy, port)
		}
		if swaps(w.Refused) {
			for i := range c.tree.listeners {
				c.tree.listeners[i].kind = ""
			}
			c.save()
			id, files = c.cold()
		}
		c.watch.Signal(t, syscall.SIGHUP)
		c.settled(id)
	}
	envoytest.Eventually(t, patience, "all is in sync, and what went is gone", func() (bool, string) {
		stdout, _, exit := c.statusOf(c.admins[:]...)
		m, err := publish.ReadManifest(c.out)
		return err == nil && exit == 0 && len(m.Retired) == 0 && !strings.Contains(stdout, "drains"), stdout
	})
	c.clean(files)
	c.admin = envoytest.FreePort(t)
	fresh := envoytest.Start(t, envoytest.Options{Bootstrap: c.bootstrap(t)})
	content(t, fresh)
	if stdout, stderr, exit := c.statusOf(c.admin); exit != 0 {
		t.Errorf("an Envoy that starts: exit status %d\n%s%s", exit, stdout, stderr)
	}
	want := runs(t, fresh)
	for i, e := range c.envoys {
		if diff := cmp.Diff(want, runs(t, e)); diff != "" {
			t.Errorf("Envoy %d does not run what one runs that starts (-starts +runs)\n%s", i, diff)
		}
	}
	fresh.Stop(t)
	if t.Failed() {
		t.FailNow()
	}
}

// nudge makes the watch reconcile: no event tells it of an edit of the output directory.
func (c *chaos) nudge() {
	switch c.rand.IntN(3) {
	case 0:
		c.tree.clusters[0].value++
		c.save()
	case 1:
		c.watch.Signal(c.t, syscall.SIGHUP)
	case 2:
		c.retry()
	}
}

// cold returns the id of the snapshot and the files of a render of the tree to a new directory.
func (c *chaos) cold() (id string, files map[string]string) {
	t := c.t
	t.Helper()
	real, err := filepath.EvalSymlinks(c.out)
	c.must(err)
	dir := filepath.Join(t.TempDir(), "cold")
	if _, stderr, exit := xdspub(t, "render", "--eds", "file", "--envoy-path", real, "--out", dir, c.src); exit != 0 {
		t.Fatalf("the tree is not what this test meant it to be: exit status %d\n%s", exit, stderr)
	}
	m, err := publish.ReadManifest(dir)
	c.must(err)
	return m.Snapshot, c.snapshot(dir)
}

// settled waits until a snapshot is published, or until it is refused and excused.
func (c *chaos) settled(id string) (w control.Watch) {
	envoytest.Eventually(c.t, 2*patience, "the tree is out", func() (bool, string) {
		var err error
		w, err = control.Ask(c.t.Context(), c.out)
		if err != nil || w.Running != nil {
			return false, fmt.Sprint(err)
		}
		return w.Refused == nil && w.Snapshot == id || w.Refused != nil && c.excused(w.Refused), fmt.Sprintf("%+v, want %s; refused: %+v", w, id, w.Refused)
	})
	return w
}

// excused reports whether the reason of a refusal is a busy port, or listeners that exchange their addresses,
// because several edits were one change.
func (c *chaos) excused(r *control.Refusal) bool {
	return swaps(r) || len(c.busy) > 0 && len(r.Findings) > 0 && !slices.ContainsFunc(r.Findings, func(d diag.Diagnostic) bool {
		return d.Severity == diag.Error && !strings.Contains(d.Message, "Address already in use")
	})
}

func swaps(r *control.Refusal) bool {
	return slices.ContainsFunc(r.Findings, func(d diag.Diagnostic) bool { return d.Code == "address-swap" })
}

// clean fails the test unless the output directory has the wanted files, and no other files.
func (c *chaos) clean(want map[string]string) {
	t := c.t
	t.Helper()
	got := c.snapshot(c.out)
	if layer := "rtds/flags/rtds.json"; want[layer] == "" {
		delete(got, layer) // an empty layer takes the place of the removed one
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what is out is not what a cold render makes (-cold +out)\n%s", diff)
	}
	for _, name := range []string{"stage", "undo"} {
		if left, err := os.ReadDir(filepath.Join(c.out, ".xdspub", name)); err != nil || len(left) > 0 {
			t.Errorf("left over in %s: %v, %v", name, left, err)
		}
	}
	if in, err := publish.ReadIntent(c.out); in != nil || err != nil {
		t.Errorf("left over: %+v, %v", in, err)
	}
	if r, err := publish.ReadRefused(c.out); err != nil || len(r.Held) > 0 {
		t.Errorf("still held: %+v, %v", r.Held, err)
	}
}

// runs returns the configuration that an Envoy runs, by kind, without times.
func runs(t *testing.T, e *envoytest.Envoy) map[string][]string {
	t.Helper()
	var dump struct{ Configs []map[string]any }
	if err := json.Unmarshal([]byte(e.Admin(t, "/config_dump?include_eds")), &dump); err != nil {
		t.Fatal(err)
	}
	all := make(map[string][]string)
	for _, section := range dump.Configs {
		if strings.HasSuffix(fmt.Sprint(section["@type"]), "BootstrapConfigDump") {
			continue
		}
		for kind, value := range section {
			list, _ := value.([]any)
			for _, one := range list {
				text, err := json.MarshalIndent(timeless(one), "", " ")
				if err != nil {
					t.Fatal(err)
				}
				all[kind] = append(all[kind], string(text))
			}
			slices.Sort(all[kind])
		}
	}
	return all
}

// timeless returns a config dump without the parts that depend on when Envoy read the files: times, and versions,
// since Envoy keeps the version with which a resource changed last.
func timeless(v any) any {
	eachObject(v, func(o map[string]any) {
		delete(o, "last_updated")
		delete(o, "version_info")
	})
	return v
}
