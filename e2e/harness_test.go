// Package e2e tests the program xdspub as users run it: on real files, with the real Envoy.
package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"xdspub/tools/envoytest"
)

const (
	patience    = 5 * time.Minute  // for an event that takes milliseconds on an idle machine
	ackTimeout  = 2 * time.Minute  // the --ack-timeout of a watch that Envoys confirm
	runTimeout  = 10 * time.Minute // for a command that ends by itself, such as go build
	stopTimeout = time.Minute      // from SIGTERM to SIGKILL
)

// root is the root of the repository, relative to the working directory of these tests.
const root = ".."

// The tested programs, built by TestMain. watcher is for commands that run beside the test, with many goroutines:
// it has the race detector if XDSPUB_RACE is set. The test binary does not need the race detector. binary is for
// commands that end by themselves. It never has the race detector: with it, hundreds of commands would take three
// times as long.
var binary, watcher string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	if plan := os.Getenv(attackersVariable); plan != "" {
		return attackAll(plan)
	}
	dir, err := os.MkdirTemp("", "xdspub-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "xdspub")
	watcher = binary
	builds := [][]string{{"-o", binary}}
	if os.Getenv("XDSPUB_RACE") != "" {
		watcher = filepath.Join(dir, "race", "xdspub")
		builds = append(builds, []string{"-race", "-o", watcher})
		os.Setenv("GORACE", "atexit_sleep_ms=10") // by default, each watch would sleep for a second at its end
	}
	for _, args := range builds {
		build := exec.Command("go", append(append([]string{"build"}, args...), "xdspub/cmd/xdspub")...)
		build.Stdout, build.Stderr = os.Stderr, os.Stderr
		if slices.Contains(args, "-race") { // needs cgo, which the release does without
			build.Env = append(os.Environ(), "CGO_ENABLED=1")
		}
		if err := build.Run(); err != nil {
			fmt.Fprintf(os.Stderr, "%v: %v\n", build, err)
			return 1
		}
	}
	return m.Run()
}

// install puts the program into bin/, so that "go build -o bin/ ./cmd/xdspub" finds it up to date. Otherwise,
// several tests would link the program at once, for a minute.
var install = sync.OnceValue(func() error {
	bin := filepath.Join(root, "bin")
	if err := os.MkdirAll(bin, 0o777); err != nil {
		return err
	}
	staged := filepath.Join(bin, "xdspub.new")
	// By another process, so that no child of this process inherits a descriptor that is open for writing.
	if out, err := exec.Command("cp", binary, staged).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return os.Rename(staged, filepath.Join(bin, "xdspub"))
})

// environment returns the environment of the test without the variables that set flags of xdspub.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "XDSPUB_") && !strings.HasPrefix(v, "XDSPUB_ENVOY=")
	})
}

// xdspub runs the program to its end, in the root of the repository.
func xdspub(t testing.TB, args ...string) (stdout, stderr string, exit int) {
	t.Helper()
	return run(t, binary, args...)
}

// run runs a program to its end, in the root of the repository.
func run(t testing.TB, name string, args ...string) (stdout, stderr string, exit int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), runTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	var out, errs bytes.Buffer
	cmd.Dir, cmd.Env = root, environment()
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if _, ended := errors.AsType[*exec.ExitError](err); ctx.Err() != nil || err != nil && !ended {
		t.Fatalf("%v: %v, %v\n%s", cmd, err, ctx.Err(), errs.String())
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// startWatch starts "xdspub watch" with args. It does not wait for the first publish: WaitLog(t, "event=published
// ") does.
func startWatch(t testing.TB, args ...string) *process {
	t.Helper()
	return start(t, watcher, append([]string{"watch"}, args...)...)
}

// process is a program that runs beside the test and ends with it. A process that ends before the test calls Signal
// or Wait fails the test.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed after cmd.Wait
	ending atomic.Bool   // the test wants or expects the end

	mu   sync.Mutex
	log  []byte
	read int           // the part of log that WaitLog has read, in bytes
	more chan struct{} // closed and replaced when log grows
}

// start starts a program in the root of the repository.
func start(t testing.TB, name string, args ...string) *process {
	t.Helper()
	return startCommand(t, exec.Command(name, args...))
}

// startCommand starts a command in the root of the repository. If cmd.Env is nil, the command gets environment().
func startCommand(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{cmd: cmd, exited: make(chan struct{}), more: make(chan struct{})}
	cmd.Dir = root
	if cmd.Env == nil {
		cmd.Env = environment()
	}
	cmd.Stdout, cmd.Stderr = p, p
	cmd.WaitDelay = stopTimeout // a child of the command may hold the pipe open, too
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = cmd.Wait() // how it ended is in cmd.ProcessState
		close(p.exited)
	}()
	t.Cleanup(func() { p.cleanUp(t) })
	return p
}

func (p *process) cleanUp(t testing.TB) {
	select {
	case <-p.exited:
		if !p.ending.Load() {
			t.Errorf("%s ended during the test: %v", p, p.cmd.ProcessState)
		}
	default:
		p.Signal(t, syscall.SIGTERM)
		select {
		case <-p.exited:
		case <-time.After(stopTimeout):
			t.Errorf("%s has not ended %v after SIGTERM and is killed", p, stopTimeout)
			p.Signal(t, syscall.SIGKILL)
			<-p.exited
		}
	}
	if t.Failed() {
		t.Logf("the log of %s:\n%s", p, p.Log())
	}
}

// String returns the command line.
func (p *process) String() string {
	return strings.Join(append([]string{filepath.Base(p.cmd.Path)}, p.cmd.Args[1:]...), " ")
}

// Write appends output of the process, of stdout or stderr, to the log.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log = append(p.log, b...)
	close(p.more)
	p.more = make(chan struct{})
	return len(b), nil
}

// Log returns all that the process has printed so far.
func (p *process) Log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return string(p.log)
}

// WaitLog waits for the next line that contains text, and returns the line. It begins after the line that the last
// call returned, so that a call for a second "published" does not get the first.
func (p *process) WaitLog(t testing.TB, text string) string {
	t.Helper()
	return p.WaitMatch(t, regexp.MustCompile(regexp.QuoteMeta(text)))
}

// WaitMatch is WaitLog for a line that a regular expression matches.
func (p *process) WaitMatch(t testing.TB, text *regexp.Regexp) string {
	t.Helper()
	late := time.After(patience)
	ended := p.exited
	for {
		line, found, more := p.next(text)
		if found {
			return line
		}
		if ended == nil {
			t.Fatalf("%s ended (%v) without printing %q", p, p.cmd.ProcessState, text)
		}
		select {
		case <-more:
		case <-ended:
			ended = nil // look once more: the last lines may have the text
		case <-late:
			t.Fatalf("%s has not printed %q within %v", p, text, patience)
		}
	}
}

// next returns the next complete line that text matches. If there is none yet, more is closed when the log grows.
func (p *process) next(text *regexp.Regexp) (line string, found bool, more <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		i := bytes.IndexByte(p.log[p.read:], '\n')
		if i < 0 {
			return "", false, p.more
		}
		line = string(p.log[p.read : p.read+i])
		p.read += i + 1
		if text.MatchString(line) {
			return line, true, nil
		}
	}
}

// Signal sends a signal. The process may end then, unless the signal is SIGHUP.
func (p *process) Signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	if s != syscall.SIGHUP {
		p.ending.Store(true)
	}
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("%v to %s: %v", s, p, err)
	}
}

// Wait waits for the end of the process, and returns the exit status; -1 if a signal ended the process.
func (p *process) Wait(t testing.TB) int {
	t.Helper()
	p.ending.Store(true)
	select {
	case <-p.exited:
	case <-time.After(patience):
		t.Fatalf("%s has not ended within %v", p, patience)
	}
	return p.cmd.ProcessState.ExitCode()
}

// content fails the test if Envoy has refused a file, or has met an unknown or a deprecated field.
func content(t *testing.T, e *envoytest.Envoy) {
	t.Helper()
	const filter = `\.update_(rejected|failure)$|^server\.dynamic_unknown_fields$|^runtime\.deprecated_feature_use$`
	for name, value := range e.Stats(t, filter) {
		if value != "0" {
			t.Errorf("%s is %s", name, value)
		}
	}
}
