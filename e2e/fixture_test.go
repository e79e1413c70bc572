package e2e

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"xdspub/tools/envoytest"
)

// fixture is a source tree, its output directory, and an Envoy that reads the output directory.
type fixture struct {
	src, out string
	args     []string // of render and watch, in front of src
	format   string   // of the published files
	admin    int      // port of Envoy's admin interface
	http     string   // the Unix socket of the watch for --http; empty for none
	watch    *process
	envoy    *envoytest.Envoy
}

// newFixture returns a fixture with the files of source, without a watch or an Envoy. args are flags of render and
// watch.
func newFixture(t *testing.T, source map[string]string, args ...string) *fixture {
	t.Helper()
	dir := t.TempDir()
	s := &fixture{src: filepath.Join(dir, "src"), out: filepath.Join(dir, "out"), admin: envoytest.FreePort(t)}
	s.args = append([]string{"--out", s.out, "--step-gap", "100ms"}, args...)
	s.format = "json"
	if i := slices.Index(args, "--format"); i >= 0 {
		s.format = args[i+1]
	}
	for name, text := range source {
		s.write(t, name, text)
	}
	return s
}

// startFixture returns a fixture with a running watch and a running Envoy.
func startFixture(t *testing.T, source map[string]string, args ...string) *fixture {
	t.Helper()
	envoytest.Binary(t) // skips the test without Envoy
	s := newFixture(t, source, args...)
	s.startWatch(t)
	s.startEnvoy(t)
	return s
}

// startWatch starts "xdspub watch" and waits for the first publish. Flags in args override those of the fixture.
func (s *fixture) startWatch(t *testing.T, args ...string) {
	t.Helper()
	s.beginWatch(t, args...)
	s.watch.WaitLog(t, "event=published ")
}

// beginWatch is startWatch without the wait.
func (s *fixture) beginWatch(t *testing.T, args ...string) {
	t.Helper()
	s.watch = startWatch(t, slices.Concat(s.args, s.operations(), args, []string{s.src})...)
}

// operations returns the flags of the HTTP server.
func (s *fixture) operations() []string {
	if s.http == "" {
		return nil
	}
	return []string{"--http", "unix:" + s.http}
}

// startEnvoy starts an Envoy on a bootstrap made for the fixture.
func (s *fixture) startEnvoy(t *testing.T) {
	t.Helper()
	s.envoy = envoytest.Start(t, envoytest.Options{Bootstrap: s.bootstrap(t)})
}

func (s *fixture) bootstrap(t *testing.T) []byte {
	t.Helper()
	stdout, stderr, exit := xdspub(t, "bootstrap", "envoy", "--out", s.out, "--admin", address(s.admin))
	if exit != 0 {
		t.Fatalf("xdspub bootstrap envoy: exit status %d\n%s", exit, stderr)
	}
	return []byte(stdout)
}

// write writes a source file by a rename, as editors do.
func (s *fixture) write(t *testing.T, name, text string) {
	t.Helper()
	envoytest.Publish(t, filepath.Join(s.src, name), text)
}

// read returns a source file.
func (s *fixture) read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.src, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// edit changes a source file, and waits until the change is published.
func (s *fixture) edit(t *testing.T, name string, change func(string) string) {
	t.Helper()
	old := s.read(t, name)
	text := change(old)
	if text == old {
		t.Fatalf("the edit of %s changes nothing:\n%s", name, old)
	}
	s.write(t, name, text)
	s.watch.WaitLog(t, "event=published ")
}

// remove removes a source file.
func (s *fixture) remove(t *testing.T, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(s.src, name)); err != nil {
		t.Fatal(err)
	}
}

// published returns a text with the name, mode, time and hash of each published file.
func (s *fixture) published(t *testing.T) string {
	t.Helper()
	var list strings.Builder
	err := filepath.WalkDir(s.out, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.Name() == ".xdspub" {
			return fs.SkipDir
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(s.out, path)
		if err != nil {
			return err
		}
		var content []byte
		if info.Mode().IsRegular() {
			if content, err = os.ReadFile(path); err != nil {
				return err
			}
		}
		_, err = fmt.Fprintf(&list, "%s %v %v %x\n", name, info.Mode(), info.ModTime(), sha256.Sum256(content))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list.String()
}

// versionStats has patterns of the statistics with the last version_info that Envoy accepted, by folder of the
// output directory. %s is the resource's name.
var versionStats = map[string]string{
	"cds":  `^cluster_manager\.cds\.version_text$`,
	"lds":  `^listener_manager\.lds\.version_text$`,
	"eds":  `^cluster\.%s\.version_text$`,
	"rds":  `^http\.[^.]*\.rds\.%s\.version_text$`,
	"srds": `^http\.[^.]*\.scoped_rds\.[^.]*\.version_text$`,
	"sds":  `^sds\.%s\.version_text$`,
	"rtds": `^runtime\.version_text$`,
	"ecds": `^extension_config_discovery\.http_filter\.%s\.version_text$`,
}

// took waits until Envoy has accepted every published file, and fails the test if Envoy has refused a file. It
// leaves out the folders in unread, which no Envoy reads.
func (s *fixture) took(t *testing.T, unread ...string) {
	t.Helper()
	if !s.exists("cds/cds." + s.format) {
		t.Errorf("there is no CDS file for Envoy to take, in %s", s.format)
	}
	for kind, pattern := range versionStats {
		files, err := filepath.Glob(filepath.Join(s.out, kind, kind+"."+s.format))
		if err != nil {
			t.Fatal(err)
		}
		named, err := filepath.Glob(filepath.Join(s.out, kind, "*", kind+"."+s.format))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range append(files, named...) {
			folder := filepath.Dir(file)
			if slices.ContainsFunc(unread, func(name string) bool { return filepath.Join(s.out, name) == folder }) {
				continue
			}
			stat := strings.ReplaceAll(pattern, "%s", regexp.QuoteMeta(filepath.Base(folder)))
			version := versionOf(t, file)
			envoytest.Eventually(t, patience, fmt.Sprintf("Envoy takes %s of %s", version, file), func() (bool, string) {
				stats := s.envoy.Stats(t, stat)
				for _, v := range stats { // of several with the same name, one is enough
					if v == version {
						return true, ""
					}
				}
				return false, fmt.Sprint(stats)
			})
		}
	}
	content(t, s.envoy)
}

// exists reports whether the output directory has a file or a folder of a name.
func (s *fixture) exists(name string) bool {
	_, err := os.Lstat(filepath.Join(s.out, name))
	return err == nil
}

// request is a request of a test to Envoy.
type request struct {
	address string // "" for 127.0.0.1
	port    int
	host    string // Host header; "" for the address
	path    string // "" for "/"
	header  string // "name: value"; "" for none
}

// answer is the answer to a request.
type answer struct {
	text   string // the status and the body, or the error
	header http.Header
}

// ask sends a request over a new connection.
func ask(t testing.TB, r request) answer {
	t.Helper()
	return askWith(t, &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}, r)
}

// askWith is ask over a client's connections.
func askWith(t testing.TB, client *http.Client, r request) answer {
	t.Helper()
	url := fmt.Sprintf("http://%s/%s", net.JoinHostPort(cmp.Or(r.address, "127.0.0.1"), fmt.Sprint(r.port)), strings.TrimPrefix(r.path, "/"))
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	q.Host = r.host
	if name, value, ok := strings.Cut(r.header, ": "); ok {
		q.Header.Set(name, value)
	}
	response, err := client.Do(q)
	if err != nil {
		return answer{text: err.Error()}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{text: err.Error()}
	}
	return answer{fmt.Sprintf("%d %s", response.StatusCode, body), response.Header}
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", fmt.Sprint(port)) }

// becomes waits until probe returns want.
func becomes(t *testing.T, what, want string, probe func() string) {
	t.Helper()
	envoytest.Eventually(t, patience, fmt.Sprintf("%s becomes %q", what, want), func() (bool, string) {
		got := probe()
		return got == want, got
	})
}

// send sends a request a few hundred times a second, until stop is called. stop fails the test if fits was false
// for an answer, and returns the number of requests.
func send(t *testing.T, r request, fits func(answer string) bool) (stop func() int) {
	end, ended := make(chan struct{}), make(chan struct{})
	var sent, bad int
	var first string
	go func() {
		defer close(ended)
		pace := time.NewTicker(3 * time.Millisecond) // without a pause, closed connections would use up the ports
		defer pace.Stop()
		for {
			select {
			case <-end:
				return
			case <-pace.C:
			}
			got := ask(t, r).text
			sent++
			if !fits(got) {
				if bad++; bad == 1 {
					first = got
				}
			}
		}
	}()
	return func() int {
		t.Helper()
		close(end)
		<-ended
		if bad > 0 || sent == 0 {
			t.Errorf("%d of %d requests failed, the first with %q", bad, sent, first)
		}
		return sent
	}
}
