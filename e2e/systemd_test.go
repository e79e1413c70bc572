package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"xdspub/tools/envoytest"
	"xdspub/tools/unixhttp"
)

const oneCluster = "\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\nname: web\n"

// notified is a socket as systemd binds one for a unit with Type=notify.
type notified struct {
	t *testing.T
	*net.UnixConn
	beats  int    // how many WATCHDOG=1 have come
	status string // the last STATUS=
	// monotonic is the last MONOTONIC_USEC=.
	monotonic string
}

func newNotified(t *testing.T) *notified {
	t.Helper()
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(shortDir(t), "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &notified{t: t, UnixConn: c}
}

// shortDir returns a new directory with a path that is short enough for a socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// wait waits for a line.
func (n *notified) wait(line string) {
	n.t.Helper()
	pattern := regexp.MustCompile("^" + line + "$")
	text := make([]byte, 4096)
	var lines []string
	if err := n.SetReadDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		n.t.Fatal(err)
	}
	for found := false; !found; {
		size, err := n.Read(text)
		if err != nil {
			n.t.Fatalf("no %s: %v; systemd was told\n%s", line, err, strings.Join(lines, "\n"))
		}
		for _, is := range strings.Split(string(text[:size]), "\n") {
			if is == "WATCHDOG=1" {
				n.beats++
			}
			if status, ok := strings.CutPrefix(is, "STATUS="); ok {
				n.status = status
			}
			if at, ok := strings.CutPrefix(is, "MONOTONIC_USEC="); ok {
				n.monotonic = at
			}
			lines = append(lines, is)
			found = found || pattern.MatchString(is)
		}
	}

}

// waitStatus waits until the last status matches.
func (n *notified) waitStatus(status string) {
	n.t.Helper()
	if !regexp.MustCompile("^" + status + "$").MatchString(n.status) {
		n.wait("STATUS=" + status)
	}
}

// TestSystemdNotify tells what systemd is told of a watch: that it is ready once the files are there, reloads after
// SIGHUP, its status, that it lives, and that it stops.
func TestSystemdNotify(t *testing.T) {
	n := newNotified(t)
	dir := t.TempDir()
	tree, out := filepath.Join(dir, "tree"), filepath.Join(dir, "out")
	file := filepath.Join(tree, "web.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(tree, 0o755); err != nil {
		t.Fatal(err)
	}
	write(oneCluster)
	cmd := exec.Command(binary, "watch", "--out", out, "--rescan", "1h", tree)
	cmd.Env = append(environment(), "NOTIFY_SOCKET="+n.LocalAddr().String(), "WATCHDOG_USEC=100000")
	p := startCommand(t, cmd)
	n.wait("READY=1")
	if _, err := os.Stat(filepath.Join(out, "cds", "cds.json")); err != nil {
		t.Errorf("the unit is ready: %v", err)
	}
	n.waitStatus("published snapshot v[0-9a-f]{16}")

	for range 2 {
		var before unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &before); err != nil {
			t.Fatal(err)
		}
		p.Signal(t, syscall.SIGHUP)
		n.wait("RELOADING=1")
		text := n.monotonic
		if at, err := strconv.ParseInt(text, 10, 64); err != nil || at < before.Nano()/1000 {
			t.Errorf("%s µs, %v; SIGHUP was sent at %d µs", text, err, before.Nano()/1000)
		}
		n.wait("READY=1")
		ready := time.Now()
		if at := logTime(t, p.WaitLog(t, "reason=SIGHUP")); at.After(ready) { // the pipe of the log may be slower than the socket
			t.Errorf("the reload ended at %v, the outcome was logged at %v", ready, at)
		}
	}
	write(strings.ReplaceAll(oneCluster, "name", "naem"))
	n.waitStatus(`the source tree is invalid \(\d+ errors?\)`)
	write(oneCluster)
	n.waitStatus("published snapshot v[0-9a-f]{16}")
	for n.beats = 0; n.beats < 3; {
		n.wait("WATCHDOG=1")
	}
	p.Signal(t, syscall.SIGTERM)
	n.wait("STOPPING=1")
	if status := p.Wait(t); status != 0 {
		t.Errorf("exit status %d", status)
	}
}

// TestSystemdNotifyServe: a server is ready when its addresses are open, because clients may have to confirm the first
// snapshot.
func TestSystemdNotifyServe(t *testing.T) {
	n := newNotified(t)
	dir := shortDir(t)
	cmd := exec.Command(binary, "serve", "--grpc", "unix:"+filepath.Join(dir, "s"), "examples/quickstart")
	cmd.Env = append(environment(), "NOTIFY_SOCKET="+n.LocalAddr().String())
	p := startCommand(t, cmd)
	n.wait("READY=1")
	if c, err := net.Dial("unix", filepath.Join(dir, "s")); err != nil {
		t.Error(err)
	} else {
		c.Close()
	}
	n.waitStatus("published snapshot v[0-9a-f]{16}.*")
	p.Signal(t, syscall.SIGHUP)
	n.wait("RELOADING=1")
	n.wait("READY=1")
	p.Signal(t, syscall.SIGTERM)
	n.wait("STOPPING=1")
}

// activated starts a server as systemd does, with open sockets that have names.
func activated(t *testing.T, names []string, files []*os.File, args ...string) *process {
	t.Helper()
	// systemd sets LISTEN_PID to the process id of the service, which only a shell knows before the program begins.
	cmd := exec.Command("sh", append([]string{"-c", `LISTEN_PID=$$ exec "$0" "$@"`, binary, "serve"}, args...)...)
	cmd.Env = append(environment(), fmt.Sprint("LISTEN_FDS=", len(files)), "LISTEN_FDNAMES="+strings.Join(names, ":"))
	cmd.ExtraFiles = files
	return startCommand(t, cmd)
}

// passedSocket returns the file of an open socket. The test closes its own listener, as systemd would keep it.
func passedSocket(t *testing.T, network, address string) (*os.File, net.Addr) {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	if u, ok := l.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false)
	}
	file, err := l.(interface{ File() (*os.File, error) }).File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	l.Close()
	return file, l.Addr()
}

// TestSocketActivation: a server takes the sockets of a socket unit by their names, and leaves their files alone.
func TestSocketActivation(t *testing.T) {
	dir := shortDir(t)
	tree := "examples/quickstart"
	grpc, _ := passedSocket(t, "unix", filepath.Join(dir, "xds"))
	web, at := passedSocket(t, "tcp", "127.0.0.1:0")
	more, _ := passedSocket(t, "unix", filepath.Join(dir, "http"))
	p := activated(t, []string{"xds", "web", "web"}, []*os.File{grpc, web, more}, "--grpc", "fd:xds", "--http", "fd:web", tree)
	p.WaitLog(t, "event=published ")
	if stdout, stderr, exit := xdspub(t, "status", "--serve", "unix:"+filepath.Join(dir, "xds")); exit != 0 {
		t.Errorf("%d %s%s", exit, stdout, stderr)
	}
	local := unixhttp.Client(filepath.Join(dir, "http"))
	for what, ask := range map[string]func() (*http.Response, error){
		"TCP":           func() (*http.Response, error) { return http.Get("http://" + at.String() + "/readyz") },
		"a Unix socket": func() (*http.Response, error) { return local.Get("http://localhost/readyz") },
	} {
		envoytest.Eventually(t, 2*time.Minute, "the server is ready by "+what, func() (bool, string) {
			r, err := ask()
			if err != nil {
				return false, err.Error()
			}
			defer r.Body.Close()
			text, err := io.ReadAll(r.Body)
			return r.StatusCode == 200 && err == nil, string(text)
		})
	}
	p.Signal(t, syscall.SIGTERM)
	if status := p.Wait(t); status != 0 {
		t.Errorf("exit status %d", status)
	}
	for _, name := range []string{"xds", "http"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Errorf("the server has removed a socket of systemd: %v", err)
		}
	}

	for _, c := range []struct{ names, address, args, want string }{
		{"web", "127.0.0.1:0", "--http fd:xds", "--http: listen on fd:xds: systemd has passed only web: correct NAME, or FileDescriptorName= in the socket unit"},
		{"web", "0.0.0.0:0", "--http fd:web", "other machines can connect, and there is no TLS"},
		{"web", "127.0.0.1:0", "--http fd:web --grpc fd:web", "--http: listen on fd:web: systemd has passed no socket"},
	} {
		file, _ := passedSocket(t, "tcp", c.address)
		p := activated(t, []string{c.names}, []*os.File{file}, append(strings.Fields(c.args), tree)...)
		if status := p.Wait(t); status != 3 || !strings.Contains(p.Log(), c.want) {
			t.Errorf("%s: exit status %d, want %q\n%s", c.args, status, c.want, p.Log())
		}
	}
	if _, stderr, exit := xdspub(t, "serve", "--grpc", "fd:xds", tree); exit != 3 || !strings.Contains(stderr, "systemd has passed no socket: start the socket unit, and let it name this service") {
		t.Errorf("without systemd: %d %s", exit, stderr)
	}
}
