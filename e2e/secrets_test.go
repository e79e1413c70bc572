package e2e

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/anypb"

	"xdspub/tools/canary"
	"xdspub/tools/envoytest"
	"xdspub/watch/control"
)

// TestCanaries plants texts in all fields for secrets, in variants for two kinds of clients. No command prints such
// a text, even if each line with a secret has errors. The files for one kind of clients have only the texts of this
// kind. Other users can't read a file with such a text, which includes the records.
func TestCanaries(t *testing.T) {
	t.Parallel()
	src, out := t.TempDir(), filepath.Join(t.TempDir(), "out")
	files := map[string]string{"prod/xdspub.yaml": "when: {env: prod}\n", "rest/xdspub.yaml": "when: {env: {not: prod}}\n"}
	for _, kind := range []string{"prod", "rest"} {
		mark := func(n int) string { return fmt.Sprintf("canary-%s-%d-", kind, n) }
		var list []string
		fields := canary.Fields()
		for i, fd := range fields {
			payload, err := anypb.New(canary.Plant(fd, mark(i)))
			if err != nil {
				t.Fatal(err)
			}
			text, err := protojson.Marshal(payload)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, fmt.Sprintf(`- {"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: c%d, connect_timeout: 1s, metadata: {typed_filter_metadata: {m: %s}}}`, i, text))
		}
		n := len(fields)
		list = append(list,
			fmt.Sprintf(`- {"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret, name: inline, generic_secret: {secret: {inline_string: %s}}}`, mark(n)),
			`- {"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret, name: file, generic_secret: {secret: {filename: key.txt}}}`,
			`- {"@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration, name: r, vhds: {config_source: {ads: {}}}}`,
			fmt.Sprintf(`- {"@type": type.googleapis.com/envoy.service.discovery.v3.Resource, name: r/h, resource: {"@type": type.googleapis.com/envoy.config.route.v3.VirtualHost, name: h, domains: [h], routes: [{match: {prefix: /}, direct_response: {status: 200}}], request_headers_to_add: [{header: {key: authorization, value: Bearer %s}}]}}`, mark(n+1)))
		files[kind+"/tree.yaml"], files[kind+"/key.txt"] = strings.Join(list, "\n")+"\n", mark(n+2)
	}
	write := func(change func(string) string) {
		t.Helper()
		for name, text := range files {
			path := filepath.Join(src, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(change(text)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	marks := regexp.MustCompile(`canary-(?:prod|rest)-\d+-`)
	says := func(wantExit int, args ...string) {
		t.Helper()
		stdout, stderr, exit := xdspub(t, args...)
		if found := marks.FindAllString(stdout+stderr, -1); exit != wantExit || len(found) > 0 {
			t.Errorf("%q prints %v, exit status %d\n%.3000s%.3000s", args, found, exit, stdout, stderr)
		}
	}
	write(func(text string) string { return text })
	says(0, "validate", "--variants", "--param", "env=test", src)
	says(0, "explain-params", "--param", "env=prod", "--against", "env=test", src)
	for _, format := range []string{"svg", "mermaid", "dot"} {
		says(0, "graph", "--all", "--format", format, "--param", "env=prod", src)
	}
	says(0, "render", "--dry-run", "--out", out, "--param", "env=test", src)
	var mu sync.Mutex
	var posted strings.Builder
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = io.Copy(&posted, r.Body)
		fmt.Fprintln(&posted, r.URL, r.Header)
	}))
	t.Cleanup(receiver.Close)
	hooked := filepath.Join(t.TempDir(), "events")
	watch := startWatch(t, "--on-event", "tee -a "+hooked, "--webhook", receiver.URL, "--webhook", "slack+"+receiver.URL,
		"--webhook", "alertmanager+"+receiver.URL, "--out", out, "--param", "env=test", src)
	watch.WaitLog(t, "event=published ")
	says(0, "status", "--out", out, src)
	says(0, "status", "--out", out, "--format", "json")

	// Each line with a secret has a fault, too: a fault of the text, or of the resource.
	for to, formats := range map[string][]string{
		"connect_timeout: -1s": {"text", "json", "sarif", "github", "gitlab", "junit"}, "connect_timeout: soon": {"text"}, "connect_timeout: 1s, bogus: 1": {"text"},
		"connect_timeout: {": {"text", "json"}, "lb_policy: 99": {"text"},
	} {
		write(func(text string) string {
			return strings.NewReplacer("connect_timeout: 1s", to, "generic_secret", "generic_secrt", "domains: [h]", "domains: []").Replace(text)
		})
		for _, format := range formats {
			says(1, "validate", "--format", format, src)
		}
	}
	watch.WaitLog(t, "level=ERROR")
	says(1, "status", "--out", out, src)
	says(1, "status", "--out", out, "--format", "json", src)
	asked, err := control.Ask(t.Context(), out)
	if err != nil {
		t.Fatal(err)
	}
	var passed string
	envoytest.Eventually(t, time.Minute, "the hooks get the errors", func() (bool, string) {
		events, _ := os.ReadFile(hooked)
		mu.Lock()
		defer mu.Unlock()
		passed = string(events) + posted.String()
		return strings.Count(passed, `"event":"source-invalid"`) > 2 && strings.Contains(passed, `"alertname":"xdspub-finding"`) &&
			strings.Contains(passed, `"text":"*ERROR finding*`), fmt.Sprintf("%.3000s", passed)
	})
	for view, text := range map[string]string{"the log": watch.Log(), "the control socket": fmt.Sprintf("%+v", asked), "a hook": passed} {
		if found := marks.FindAllString(text, -1); len(found) > 0 {
			t.Errorf("%s has %v", view, found)
		}
	}

	got := make(map[string]bool)
	err = filepath.WalkDir(out, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := e.Info()
		found := marks.FindAllString(string(data), -1)
		if err == nil && len(found) > 0 && info.Mode()&0o007 != 0 {
			t.Errorf("%s has %v, and mode %v", path, found, info.Mode())
		}
		for _, is := range found {
			got[is] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range len(canary.Fields()) + 3 {
		want := fmt.Sprintf("canary-rest-%d-", i)
		if !got[want] {
			t.Errorf("%s is not published", want)
		}
		delete(got, want)
	}
	if len(got) > 0 {
		t.Errorf("published is what is for others: %v", slices.Sorted(maps.Keys(got)))
	}
}
