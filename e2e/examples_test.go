package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"xdspub/tools/envoytest"
)

// example is a copy of an example, on free ports. Its methods run the commands of the README, on the copy and its
// ports.
type example struct {
	dir    string // the copy
	readme string
	moved  *strings.Replacer // replaces the ports and paths of the README by those of the copy
	done   map[string]bool   // the commands of the README that the test has run
}

// newExample copies an example. ports are the ports that the example listens on or connects to.
func newExample(t *testing.T, name string, ports ...int) *example {
	t.Helper()
	e := &example{dir: filepath.Join(t.TempDir(), name), done: make(map[string]bool)}
	original := filepath.Join(root, "examples", name)
	if err := os.CopyFS(e.dir, os.DirFS(original)); err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(filepath.Join(original, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	e.readme = string(readme)

	var renumbered []string
	for _, port := range ports {
		renumbered = append(renumbered, strconv.Itoa(port), strconv.Itoa(envoytest.FreePort(t)))
	}
	tree := strings.NewReplacer(append(renumbered, "examples/"+name, e.dir)...) // a file may name another file
	e.edit(t, tree.Replace)
	e.moved = strings.NewReplacer(append(renumbered,
		"./examples/", "./examples/", // a program of the example stays where it is
		"examples/"+name, e.dir,
		"bin/xdspub watch", watcher+" watch",
		"bin/xdspub", binary,
		"/tmp/", t.TempDir()+"/")...)
	return e
}

// texts are the suffixes of resource files in a text format.
var texts = []string{".yaml", ".json", ".txtpb", ".pb_text"}

// edit changes every resource file of the copy, or the named files. It writes a file by a rename, as editors do.
func (e *example) edit(t *testing.T, change func(string) string, names ...string) {
	t.Helper()
	err := filepath.WalkDir(e.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !slices.Contains(texts, filepath.Ext(path)) {
			return err
		}
		name, err := filepath.Rel(e.dir, path)
		if err != nil || len(names) > 0 && !slices.Contains(names, name) {
			return err
		}
		old, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if text := change(string(old)); text != string(old) {
			envoytest.Publish(t, path, text)
		} else if len(names) > 0 {
			t.Fatalf("the edit of %s changes nothing", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// replace returns an edit that replaces one text by another.
func replace(old, text string) func(string) string {
	return func(s string) string { return strings.ReplaceAll(s, old, text) }
}

// line returns a command line of the README for the copy. It fails the test if the README lacks the line.
func (e *example) line(t *testing.T, line string) string {
	t.Helper()
	if !slices.Contains(e.lines(), line) {
		t.Fatalf("the README has no command %q", line)
	}
	e.done[line] = true
	return e.moved.Replace(line)
}

// lines returns all commands of the README.
func (e *example) lines() (list []string) {
	block, shell := false, false
	for l := range strings.Lines(e.readme) {
		l = strings.TrimSpace(l)
		switch {
		case strings.HasPrefix(l, "```"):
			block = !block
			shell = block && l == "```sh"
		case shell:
			list = append(list, l)
		}
	}
	return list
}

// allDone fails the test unless the test has run all commands of the README.
func (e *example) allDone(t *testing.T) {
	t.Helper()
	for _, line := range e.lines() {
		if !e.done[line] {
			t.Errorf("the test does not do what the README says: %s", line)
		}
	}
}

// tree returns the source tree: the argument of the first command of the README that reads a tree. If a command
// makes the tree, that command runs first.
func (e *example) tree(t *testing.T) string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^bin/xdspub (?:validate|render|watch) (?:.* )?(\S+)$`).FindStringSubmatch(e.readme)
	if m == nil {
		t.Fatal("the README has no command that reads a source tree")
	}
	if line := regexp.MustCompile(`(?m)^bin/xdspub import .*$`).FindString(e.readme); line != "" {
		e.run(t, line)
	}
	return e.moved.Replace(m[1])
}

// run runs a command of the README, which has to succeed.
func (e *example) run(t *testing.T, line string) (stdout string) {
	t.Helper()
	command := e.line(t, line)
	stdout, stderr, exit := run(t, "/bin/sh", "-c", command)
	if exit != 0 {
		t.Fatalf("%s: exit status %d\n%s%s", command, exit, stdout, stderr)
	}
	return stdout
}

// start starts a command of the README that runs until the test ends.
func (e *example) start(t *testing.T, line string) *process {
	t.Helper()
	return start(t, "/bin/sh", "-c", "exec "+e.line(t, line))
}

// upstreams starts examples/upstream.py, and waits until all upstreams listen.
func (e *example) upstreams(t *testing.T, line string) {
	t.Helper()
	p := e.start(t, line)
	for _, arg := range strings.Fields(e.line(t, line)) {
		if name, port, ok := strings.Cut(arg, ":"); ok {
			p.WaitLog(t, name+" "+port)
		}
	}
}

// envoy starts Envoy on the file that a command of the README names, with further flags, so that several Envoys can
// run on one machine.
func (e *example) envoy(t *testing.T, line string) *envoytest.Envoy {
	t.Helper()
	fields := strings.Fields(e.line(t, line))
	if len(fields) != 3 || fields[0] != `"$(scripts/envoy)"` || fields[1] != "--config-path" {
		t.Fatalf("%q does not start Envoy as expected", line)
	}
	path := fields[2]
	if !filepath.IsAbs(path) {
		path = filepath.Join(root, path)
	}
	bootstrap, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return envoytest.Start(t, envoytest.Options{Bootstrap: bootstrap})
}

// curl sends the request of a curl command of the README, without curl, and fails the test if the answer is not want.
func (e *example) curl(t *testing.T, line, want string) {
	t.Helper()
	answer, state := e.ask(t, line)
	if answer != want+"\n" {
		t.Errorf("%s: %s, want %q", line, state, want)
	}
}

// answers waits until a curl command of the README gets the answer want.
func (e *example) answers(t *testing.T, line, want string) {
	t.Helper()
	envoytest.Eventually(t, patience, fmt.Sprintf("%s answers %q", line, want), func() (bool, string) {
		answer, state := e.ask(t, line)
		return answer == want+"\n", state
	})
}

func (e *example) ask(t *testing.T, line string) (answer, state string) {
	t.Helper()
	fields := strings.Fields(strings.ReplaceAll(e.line(t, line), "'", ""))
	if fields[0] != "curl" {
		t.Fatalf("%q is no curl command", line)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fields[len(fields)-1], nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	for options := fields[1 : len(fields)-1]; len(options) > 0; {
		switch {
		case options[0] == "--cacert":
			transport.TLSClientConfig = &tls.Config{RootCAs: pool(t, options[1])}
			options = options[2:]
		case options[0] == "-H" && options[1] == "Host:":
			request.Host = options[2]
			options = options[3:]
		default:
			t.Fatalf("%q: what does %s do?", line, options[0])
		}
	}
	response, err := (&http.Client{Transport: transport, Timeout: patience}).Do(request)
	if err != nil {
		return "", err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return "", err.Error()
	}
	return string(body), fmt.Sprintf("%s %q", response.Status, body)
}

// pool returns the certificates in a file.
func pool(t *testing.T, path string) *x509.CertPool {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	certs := x509.NewCertPool()
	if !certs.AppendCertsFromPEM(text) {
		t.Fatalf("no certificate in %s", path)
	}
	return certs
}

func TestQuickstart(t *testing.T) {
	envoytest.Binary(t)
	t.Parallel()
	e := newExample(t, "quickstart", 8081, 8082, 8083, 9901, 10000)
	const (
		envoy = `"$(scripts/envoy)" --config-path /tmp/quickstart-envoy.yaml`
		home  = "curl http://127.0.0.1:10000/"
		api   = "curl http://127.0.0.1:10000/api/orders"
	)
	e.upstreams(t, "python3 examples/upstream.py web:8081 api:8082 api:8083")
	e.line(t, "go build -o bin/ ./cmd/xdspub")
	e.run(t, "bin/xdspub validate examples/quickstart")
	watch := e.start(t, "bin/xdspub watch --out /tmp/quickstart examples/quickstart")
	watch.WaitLog(t, "event=published ")
	e.run(t, "bin/xdspub bootstrap envoy --out /tmp/quickstart --admin 127.0.0.1:9901 --node-id quickstart-1 --node-cluster quickstart > /tmp/quickstart-envoy.yaml")
	live := e.envoy(t, envoy)
	e.answers(t, home, "web")
	e.answers(t, api, "api")

	// The edit of the README.
	e.edit(t, replace("cluster: web", "cluster: api"), "routes/ingress.yaml")
	watch.WaitLog(t, "event=published ")
	e.answers(t, home, "api")

	gone := e.moved.Replace("127.0.0.1:8083")
	e.edit(t, func(s string) string { return s[:strings.LastIndex(s, "- locality:")] }, "endpoints/api.yaml")
	watch.WaitLog(t, "event=published ")
	envoytest.Eventually(t, patience, "the endpoint is gone", func() (bool, string) {
		clusters := live.Admin(t, "/clusters")
		return !strings.Contains(clusters, gone), clusters
	})
	e.curl(t, api, "api")

	e.edit(t, replace("cluster: api", "cluster: nope"), "routes/ingress.yaml")
	watch.WaitLog(t, "unresolved-reference")
	watch.WaitLog(t, "event=source-invalid ")
	e.curl(t, home, "api")
	content(t, live)
	live.Stop(t)
	live = e.envoy(t, envoy)
	e.answers(t, home, "api")
	content(t, live)
	e.allDone(t)
}

func TestSecrets(t *testing.T) {
	envoytest.Binary(t)
	t.Parallel()
	e := newExample(t, "secrets", 8443, 9901, 10443)
	const (
		certs = "go run ./examples/secrets/make-certs examples/secrets"
		curl  = "curl --cacert examples/secrets/certs/ca.pem https://localhost:10443/"
	)
	// A user may have made the certificates in the example itself.
	for _, made := range []string{"certs", "secrets"} {
		if err := os.RemoveAll(filepath.Join(e.dir, made)); err != nil {
			t.Fatal(err)
		}
	}
	stdout, _, exit := xdspub(t, "validate", e.dir)
	if exit != 1 || !strings.Contains(stdout, `"server"`) || !strings.Contains(stdout, `"ca"`) {
		t.Errorf("validate without the certificates: exit status %d, want 1 and the names of both secrets:\n%s", exit, stdout)
	}
	e.run(t, certs)
	e.upstreams(t, "python3 examples/upstream.py --tls examples/secrets/certs/billing.pem billing:8443")
	e.line(t, "go build -o bin/ ./cmd/xdspub")
	e.run(t, "bin/xdspub validate examples/secrets")
	watch := e.start(t, "bin/xdspub watch --out /tmp/secrets examples/secrets")
	watch.WaitLog(t, "event=published ")
	e.run(t, "bin/xdspub bootstrap envoy --out /tmp/secrets --admin 127.0.0.1:9901 --node-id secrets-1 --node-cluster secrets > /tmp/secrets-envoy.yaml")
	live := e.envoy(t, `"$(scripts/envoy)" --config-path /tmp/secrets-envoy.yaml`)
	e.answers(t, curl, "billing")

	// An open connection stays open when the certificate is renewed.
	address := e.moved.Replace("localhost:10443")
	ca := pool(t, filepath.Join(e.dir, "certs/ca.pem"))
	dial := func() *tls.Conn {
		t.Helper()
		c, err := tls.Dial("tcp", address, &tls.Config{RootCAs: ca})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	serial := func(c *tls.Conn) string { return c.ConnectionState().PeerCertificates[0].SerialNumber.String() }
	open := dial()
	listener := live.ConfigDump(t, "dynamic_listeners")

	e.run(t, certs)
	if line := watch.WaitLog(t, "event=published "); !strings.Contains(line, "written=1 ") {
		t.Errorf("the renewal wrote more than one file: %s", line)
	}
	envoytest.Eventually(t, patience, "Envoy has the new certificate", func() (bool, string) {
		now := serial(dial())
		return now != serial(open), "serial number " + now
	})
	e.curl(t, curl, "billing")
	if _, err := io.WriteString(open, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(open); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 200 ") {
		t.Errorf("the connection from before the renewal answers %q, %v", answer, err)
	}
	if now := live.ConfigDump(t, "dynamic_listeners"); fmt.Sprint(now) != fmt.Sprint(listener) {
		t.Errorf("the renewal touched the listener: %v, was %v", now, listener)
	}
	content(t, live)
	e.allDone(t)
}

func TestStaticImport(t *testing.T) {
	envoytest.Binary(t)
	t.Parallel()
	e := newExample(t, "static-import", 8081, 8082, 9901, 10080)
	answers := func() {
		t.Helper()
		e.answers(t, "curl http://127.0.0.1:10080/", "website")
		e.answers(t, "curl -H 'Host: shop.example.com' http://127.0.0.1:10080/", "shop")
	}
	e.upstreams(t, "python3 examples/upstream.py website:8081 shop:8082")
	before := e.envoy(t, `"$(scripts/envoy)" --config-path examples/static-import/envoy.yaml`)
	answers()
	before.Stop(t)

	e.line(t, "go build -o bin/ ./cmd/xdspub")
	e.run(t, "bin/xdspub import examples/static-import/envoy.yaml /tmp/static-import")
	e.run(t, "bin/xdspub render --bootstrap /tmp/static-import/bootstrap.yaml --out /tmp/static-import-out /tmp/static-import/config")
	e.run(t, "bin/xdspub bootstrap envoy --out /tmp/static-import-out --from /tmp/static-import/bootstrap.yaml > /tmp/static-import-envoy.yaml")
	after := e.envoy(t, `"$(scripts/envoy)" --config-path /tmp/static-import-envoy.yaml`)
	answers()
	content(t, after)
	e.allDone(t)
}
