package envoytest

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

const (
	startTimeout = 2 * time.Minute // to be LIVE; 60 ms on an idle machine
	stopTimeout  = time.Minute     // from SIGTERM to SIGKILL
	exitTimeout  = 2 * time.Minute // to end by itself
	logTail      = 64 << 10        // bytes of the log that a failed test prints
)

// Options say how an Envoy is started.
type Options struct {
	// Bootstrap is Envoy's configuration, YAML or JSON.
	Bootstrap []byte
	// Args are added to the command line. --concurrency replaces the default of 1. A base id or a restart epoch
	// removes the default --disable-hot-restart.
	Args []string
	// Dir is the working directory; "" means a new directory.
	Dir string
	// Binary is the path of the Envoy to run; "" means the result of the function Binary.
	Binary string
}

// Envoy is a process that starts and ends with a test.
type Envoy struct {
	cmd    *exec.Cmd
	files  string // the directory of the bootstrap, the log and the admin address
	admin  *http.Client
	exited chan struct{} // closed after cmd.Wait
	ending atomic.Bool   // the test wants or expects the end
	over   bool          // Try has removed the process and its files
}

// Start starts Envoy and returns when it is LIVE. The bootstrap needs an admin section.
func Start(t testing.TB, o Options) *Envoy {
	t.Helper()
	e := launch(t, o)
	Eventually(t, startTimeout, "Envoy is LIVE", func() (bool, string) {
		select {
		case <-e.exited:
			e.ending.Store(true)
			t.Fatalf("Envoy ended before it was LIVE: %v", e.cmd.ProcessState)
		default:
		}
		address := e.address(t)
		if address == "" {
			return false, "no admin address; has the bootstrap an admin section?"
		}
		e.admin = adminClient(address)
		_, body, err := e.ask(http.MethodGet, "/ready")
		if err != nil {
			return false, err.Error()
		}
		state := strings.TrimSpace(body)
		return state == "LIVE", state
	})
	return e
}

// Run starts an Envoy that ends by itself, such as an Envoy with a bad bootstrap. It returns the exit status of the
// Envoy, which is -1 if a signal ended it, and its log.
func Run(t testing.TB, o Options) (code int, log string) {
	t.Helper()
	e := launch(t, o)
	return e.Wait(t).ExitCode(), e.Log()
}

// Validate runs envoy --mode validate on a bootstrap. In this mode, Envoy reads no file that a path_config_source
// names.
func Validate(t testing.TB, config []byte) (ok bool, output string) {
	t.Helper()
	code, output := Run(t, Options{Bootstrap: config, Args: []string{"--mode", "validate"}})
	return code == 0, output
}

// address returns the address of the admin interface, or "" before Envoy has written it. On a full disk, Envoy
// makes the file, writes nothing, and goes on. address then ends the test.
func (e *Envoy) address(t testing.TB) string {
	t.Helper()
	address, err := os.ReadFile(e.file("admin"))
	if err == nil && len(address) == 0 {
		if err := os.WriteFile(e.file("room"), make([]byte, 4<<10), 0o600); err != nil {
			t.Fatalf("Envoy has no room for its admin address: %v", err)
		}
	}
	return string(address)
}

// launch starts the process. The cleanup of the test ends it.
func launch(t testing.TB, o Options) *Envoy {
	t.Helper()
	binary := o.Binary
	if binary == "" {
		binary = Binary(t)
	}
	files, err := os.MkdirTemp(t.ArtifactDir(), "envoy-")
	if err != nil {
		t.Fatal(err)
	}
	e := &Envoy{files: files, exited: make(chan struct{})}

	// Envoy reads numbers in JSON and in YAML differently. The suffix decides.
	config := e.file("bootstrap.yaml")
	if bytes.HasPrefix(bytes.TrimSpace(o.Bootstrap), []byte("{")) {
		config = e.file("bootstrap.json")
	}
	if err := os.WriteFile(config, o.Bootstrap, 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(e.file("log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close() // Envoy has its own descriptor

	e.cmd = exec.Command(binary, arguments(o.Args, config, e.file("admin"))...)
	e.cmd.Dir = o.Dir
	if e.cmd.Dir == "" {
		e.cmd.Dir = t.TempDir()
	}
	e.cmd.Stdout, e.cmd.Stderr = log, log
	e.cmd.SysProcAttr = processAttributes()
	if err := e.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = e.cmd.Wait() // how it ended is in cmd.ProcessState
		close(e.exited)
	}()
	t.Cleanup(func() { e.cleanUp(t) })
	return e
}

// arguments returns the command line. Envoy refuses a flag that is given twice, so a flag of own removes the default.
//
// Envoys on one host must not share a base id. By default, hot restart is disabled, and Envoy has no base id. With
// --use-dynamic-base-id, each start would leave a file in /dev/shm.
func arguments(own []string, config, admin string) []string {
	has := func(flags ...string) bool {
		return slices.ContainsFunc(own, func(arg string) bool { return slices.Contains(flags, arg) })
	}
	args := []string{"--config-path", config, "--admin-address-path", admin}
	if !has("--concurrency") {
		args = append(args, "--concurrency", "1")
	}
	if !has("--base-id", "--use-dynamic-base-id", "--restart-epoch", "--disable-hot-restart") {
		args = append(args, "--disable-hot-restart")
	}
	return append(args, own...)
}

// BaseID returns an id that only Envoys which take over from each other share. BaseID skips the test on
// systems other than Linux, because Envoy hot restarts on Linux only.
func BaseID(t testing.TB) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("Envoy hot restarts on Linux only")
	}
	Binary(t)
	id := strconv.Itoa(FreePort(t))
	t.Cleanup(func() {
		files, _ := filepath.Glob("/dev/shm/envoy_shared_memory_" + id + "*")
		for _, f := range files {
			os.Remove(f)
		}
	})
	return id
}

func (e *Envoy) cleanUp(t testing.TB) {
	if e.over {
		return
	}
	if !e.gone() {
		e.Stop(t)
	} else if !e.ending.Load() {
		t.Errorf("Envoy died during the test: %v", e.cmd.ProcessState)
	}
	if t.Failed() {
		t.Logf("the end of Envoy's log (pid %d):\n%s", e.PID(), tail(e.Log()))
	}
}

// gone reports whether the process has ended, also before exited is closed.
func (e *Envoy) gone() bool {
	select {
	case <-e.exited:
		return true
	default:
	}
	if !errors.Is(syscall.Kill(e.PID(), 0), syscall.ESRCH) {
		return false
	}
	<-e.exited
	return true
}

func tail(log string) string {
	if len(log) <= logTail {
		return log
	}
	log = log[len(log)-logTail:]
	_, whole, _ := strings.Cut(log, "\n")
	return "…\n" + whole
}

// Stop ends Envoy by SIGTERM and, if Envoy does not end within a minute, by SIGKILL. Stop returns when the process
// is gone. A further call has no effect.
func (e *Envoy) Stop(t testing.TB) {
	t.Helper()
	e.signal(t, syscall.SIGTERM)
	select {
	case <-e.exited:
	case <-time.After(stopTimeout):
		t.Logf("Envoy has not ended %v after SIGTERM and is killed", stopTimeout)
		e.Kill(t)
	}
}

// Kill ends Envoy by SIGKILL, like a crash, and returns when the process is gone.
func (e *Envoy) Kill(t testing.TB) {
	t.Helper()
	e.signal(t, syscall.SIGKILL)
	<-e.exited
}

// signal sends a signal that ends Envoy. It signals the process group, since XDSPUB_ENVOY may name a wrapper.
func (e *Envoy) signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	e.ending.Store(true)
	select {
	case <-e.exited: // the id may be another process's by now
		return
	default:
	}
	if err := syscall.Kill(-e.PID(), s); err != nil && !errors.Is(err, syscall.ESRCH) {
		t.Errorf("signal %v to Envoy: %v", s, err)
	}
}

// Wait waits until Envoy ends by itself, and returns its state. The end of Envoy does not fail the test.
func (e *Envoy) Wait(t testing.TB) *os.ProcessState {
	t.Helper()
	e.ending.Store(true)
	select {
	case <-e.exited:
	case <-time.After(exitTimeout):
		t.Fatalf("Envoy has not ended by itself within %v", exitTimeout)
	}
	return e.cmd.ProcessState
}

// PID returns the process id.
func (e *Envoy) PID() int { return e.cmd.Process.Pid }

// Log returns Envoy's log so far.
func (e *Envoy) Log() string {
	log, err := os.ReadFile(e.file("log"))
	if err != nil {
		return err.Error()
	}
	return string(log)
}

// InotifyInstances returns the number of inotify instances that Envoy holds, one for each path subscription. By
// default, a user may have 128 instances, and an Envoy that asks for another one aborts. On systems other than
// Linux, InotifyInstances skips the test.
func (e *Envoy) InotifyInstances(t testing.TB) int {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("inotify is Linux's")
	}
	dir := filepath.Join("/proc", strconv.Itoa(e.PID()), "fd")
	fds, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, fd := range fds {
		// An error means that the descriptor was closed meanwhile.
		if target, err := os.Readlink(filepath.Join(dir, fd.Name())); err == nil && target == "anon_inode:inotify" {
			n++
		}
	}
	return n
}

func (e *Envoy) file(name string) string { return filepath.Join(e.files, name) }

// Signal sends a signal that does not end Envoy, such as SIGSTOP.
func (e *Envoy) Signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(-e.PID(), s); err != nil {
		t.Fatalf("signal %v to Envoy: %v", s, err)
	}
}
