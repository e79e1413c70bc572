package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

const patience = time.Minute

// fetched returns the path that a script prints; in CI a missing program is a failure.
func fetched(t *testing.T, script string) string {
	t.Helper()
	out, err := exec.Command(filepath.Join("../../scripts", script), "--no-install").Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		missing := fmt.Sprintf("NOT TESTED: run scripts/%s once: %s", script, failed.Stderr)
		if os.Getenv("CI") == "true" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	if err != nil {
		t.Fatal(err)
	}
	path, err := filepath.Abs(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// program builds xdspub.
func program(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "xdspub")
	build := exec.Command("go", "build", "-o", path, "./cmd/xdspub")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

// watch is a running xdspub watch.
type watch struct {
	src, url string
}

const cluster = "\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\nname: %q\n%s\n"

// start starts a watch with more options.
func start(t *testing.T, options ...string) *watch {
	t.Helper()
	dir := t.TempDir()
	w := &watch{src: filepath.Join(dir, "src")}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	w.url = "http://" + address + "/"
	if err := os.Mkdir(w.src, 0o755); err != nil {
		t.Fatal(err)
	}
	w.write(t, "web.yaml", fmt.Sprintf(cluster, "web", ""))
	args := append([]string{"watch", "--http", address, "--out", filepath.Join(dir, "out")}, options...)
	cmd := exec.Command(program(t), append(args, w.src)...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil || t.Failed() {
			t.Log(err, stderr.String())
		}
	})
	return w
}

func (w *watch) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(w.src, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// browser is a tab of Chromium.
type browser struct {
	context.Context
	complaints []string // of the console: errors, and what the policy forbids
}

func open(t *testing.T) *browser {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(fetched(t, "chromium")), chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir()))
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(func() { _ = chromedp.Cancel(ctx); cancel() })
	b := &browser{Context: ctx}
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil { // starts the browser
		t.Fatal(err)
	}
	err := chromedp.Listen(ctx, func(e any) {
		switch e := e.(type) {
		case *runtime.EventExceptionThrown:
			b.complaints = append(b.complaints, e.ExceptionDetails.Text)
		case *log.EventEntryAdded:
			b.complaints = append(b.complaints, e.Entry.Text)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// run runs an action, and returns its value.
func run[T any](t *testing.T, b *browser, action chromedp.Action[T]) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(b, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, action)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// shows waits until an element has a text.
func (b *browser) shows(t *testing.T, selector, text string) {
	t.Helper()
	var is string
	for ends := time.Now().Add(patience); time.Now().Before(ends); time.Sleep(50 * time.Millisecond) {
		is = run(t, b, chromedp.Evaluate[string](fmt.Sprintf(`document.querySelector(%q)?.innerText ?? ""`, selector)))
		if strings.Contains(is, text) {
			return
		}
	}
	t.Fatalf("%s has no %q: %s", selector, text, is)
}

// accessible fails if axe-core finds something that a screen reader or a keyboard can't use.
func (b *browser) accessible(t *testing.T, where string) {
	t.Helper()
	script, err := os.ReadFile(fetched(t, "axe"))
	if err != nil {
		t.Fatal(err)
	}
	run(t, b, chromedp.Evaluate[chromedp.Void](string(script)))
	found := run(t, b, chromedp.Evaluate[string](`axe.run().then(r => JSON.stringify(r.violations.map(v => v.id + ": " + v.help + ": " + v.nodes.map(n => n.html + " " + n.failureSummary).join(" ")).concat(r.passes.length < 10 ? ["axe-core has checked too little"] : [])))`,
		chromedp.EvalAwaitPromise))
	var list []string
	if err := json.Unmarshal([]byte(found), &list); err != nil {
		t.Fatal(err)
	}
	for _, problem := range list {
		t.Errorf("%s: %s", where, problem)
	}
}

// picture writes a picture of the page into the folder XDSPUB_SCREENSHOTS, if it is set.
func picture(t *testing.T, b *browser, name string) {
	t.Helper()
	dir := os.Getenv("XDSPUB_SCREENSHOTS")
	if dir == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), run(t, b, chromedp.FullScreenshot(100)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// visit opens the page of a watch.
func (b *browser) visit(t *testing.T, w *watch) {
	t.Helper()
	// The first look may come before the address is open.
	for ends := time.Now().Add(patience); time.Now().Before(ends); time.Sleep(50 * time.Millisecond) {
		if conn, err := net.Dial("tcp", strings.Trim(w.url, "htp:/")); err == nil {
			conn.Close()
			break
		}
	}
	run(t, b, chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, log.Enable, cdp.Empty{})
		return err
	}))
	run(t, b, chromedp.Navigate(w.url))
	b.shows(t, "#link", "Live")
}

// TestPage: the page follows what the watch does, by keyboard and screen reader, light and dark, on a phone and on a
// desk; a name with markup is text; nothing breaks the policy for content.
func TestPage(t *testing.T) {
	w, b := start(t, "--envoy-admin", "http://127.0.0.1:1", "--ack-timeout", "1s"), open(t)
	b.visit(t, w)
	b.shows(t, "#state", "live since")
	b.shows(t, "#events", "published")
	b.shows(t, "#state", "unreachable")

	w.write(t, "bad.yaml", fmt.Sprintf(cluster, "<script>alert(1)</script>", "lb_polcy: ROUND_ROBIN"))
	b.shows(t, "#state", "the source tree is invalid (1 error)")
	b.shows(t, "#state pre", "bad.yaml:3:1: error: unknown field")
	b.shows(t, "#state pre", "lb_polcy: ROUND_ROBIN")
	b.shows(t, "#events", "source-invalid")
	for _, size := range []struct {
		name          string
		width, height int64
	}{{"phone", 390, 844}, {"desk", 1440, 900}} {
		for _, scheme := range []string{"light", "dark"} {
			run(t, b, chromedp.EmulateViewport(size.width, size.height))
			run(t, b, chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
				_, err := cdp.Call(ctx, tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
					Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
				})
				return err
			}))
			if run(t, b, chromedp.Evaluate[bool](`document.documentElement.scrollWidth > innerWidth`)) {
				t.Errorf("%s: the page is wider than the screen", size.name)
			}
			b.accessible(t, size.name+", "+scheme)
			picture(t, b, fmt.Sprintf("page-%s-%s", size.name, scheme))
		}
	}

	// The keyboard reaches the list of events and its filter.
	run(t, b, chromedp.Focus(chromedp.CSS("#filter")))
	run(t, b, chromedp.SendKeys(chromedp.CSS("#filter"), "source-invalid"))
	if shown := run(t, b, chromedp.Evaluate[int](`[...document.querySelectorAll("#events li")].filter(l => !l.hidden).length`)); shown != 1 {
		t.Errorf("the filter leaves %d events", shown)
	}

	if err := os.Remove(filepath.Join(w.src, "bad.yaml")); err != nil {
		t.Fatal(err)
	}
	w.write(t, "more.yaml", fmt.Sprintf(cluster, "<script>alert(1)</script>", ""))
	run(t, b, chromedp.Evaluate[chromedp.Void](`const f = document.getElementById("filter"); f.value = ""; f.dispatchEvent(new Event("input"))`))
	b.shows(t, "#events", "CDS/<script>alert(1)</script>")
	b.shows(t, "#state", "1 of 1 Envoys does not answer")

	// The graph of a refused tree is on the page, and behind the image with a link on each resource.
	w.write(t, "routes.yaml", `{"@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration, name: main, virtual_hosts: [{name: v, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: nowhere}}]}]}`)
	b.shows(t, "#state pre", `routes.yaml:1:174: error: unknown cluster "nowhere"`) // the first refusal may still be shown
	for ends := time.Now().Add(patience); !run(t, b, chromedp.Evaluate[bool](`(i => (i.scrollIntoView(), i.naturalWidth > 100))(document.querySelector("a.graph img"))`)); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(ends) {
			t.Fatal("the page has no image of the graph")
		}
	}
	picture(t, b, "page-graph")
	run(t, b, chromedp.Navigate(w.url+"graph"))
	b.shows(t, "main", "nowhere")
	b.accessible(t, "graph")
	picture(t, b, "graph")
	run(t, b, chromedp.Click(chromedp.CSS(`a[href*="CDS%2Fweb"]`)))
	b.shows(t, "main", "whole graph")
	if focus := run(t, b, chromedp.Evaluate[string](`document.getElementById("focus").value`)); focus != "CDS/web" {
		t.Errorf("a click on CDS/web shows %q", focus)
	}
	for _, complaint := range b.complaints {
		t.Errorf("the console says: %s", complaint)
	}
}
