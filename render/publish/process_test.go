package publish

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Some tests need other processes. These run the test binary, with a role in the environment.
const (
	envRole     = "XDSPUB_TEST_ROLE" // die or hold
	envOut      = "XDSPUB_TEST_OUT"
	envScenario = "XDSPUB_TEST_SCENARIO"
	envAt       = "XDSPUB_TEST_AT"
)

func TestMain(m *testing.M) {
	var err error
	switch role := os.Getenv(envRole); role {
	case "":
		os.Exit(m.Run())
	case "die":
		err = die()
	case "hold":
		err = hold()
	default:
		err = fmt.Errorf("no role %q", role)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// hold opens the directory, prints a line, and keeps the directory open until its input ends.
func hold() error {
	d, err := Open(os.Getenv(envOut), Options{})
	if err != nil {
		return err
	}
	fmt.Println("holding")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	return d.Close()
}

// self returns the path of the running binary.
func self(t *testing.T) string {
	t.Helper()
	name, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return name
}

func child(binary string, env ...string) *exec.Cmd {
	cmd := exec.Command(binary)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	return cmd
}

func TestLocked(t *testing.T) {
	out, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	lock := filepath.Join(out, private, "lock")
	d := mustOpen(t, out, osDisk{})
	_, err = Open(out, Options{})
	if locked, ok := errors.AsType[*LockedError](err); !ok || locked.PID != os.Getpid() || locked.Path != lock {
		t.Errorf("a second Open: %v", err)
	}
	// The attempt of the second Dir must not end the lock of the first.
	if _, err := Open(out, Options{}); err == nil {
		t.Error("a third Open got it")
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(lock); err != nil {
		t.Error(err)
	}
	// A lock file without a process locks nothing, whatever its contents.
	if err := os.WriteFile(lock, []byte("1 "+strings.Repeat("x", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	publishOnce(t, out, oldPlan())
}

func TestLockedByAnother(t *testing.T) {
	out := t.TempDir()
	for _, do := range []func(string) error{
		done(state1()),
		killed(state2(), &envoy{snapshot: "s2", refuse: "main 2"}, 2, "rename", " cds/cds.json"),
	} {
		if err := do(out); err != nil {
			t.Fatal(err)
		}
	}
	before := published(t, out)
	cmd := child(self(t), envRole+"=hold", envOut+"="+out)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || line != "holding\n" {
		t.Errorf("child says %q, %v", line, err)
	}
	_, err = Open(out, Options{})
	if locked, ok := errors.AsType[*LockedError](err); !ok || locked.PID != cmd.Process.Pid {
		t.Errorf("Open: %v, want a lock of %d", err, cmd.Process.Pid)
	} else if want := fmt.Sprintf("held by process %d", cmd.Process.Pid); !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
	// Without a lock, as a dry run does.
	if _, err := Pending(out, newPlan(), Options{}); err != nil {
		t.Error(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait() // the error says that it was killed
	// A process without the lock recovers nothing.
	checkPublished(t, out, before)
	d := mustOpen(t, out, &probe{root: out, quick: true})
	if did, err := d.Recover(context.Background(), Plan{}); err != nil || !did {
		t.Errorf("Recover: %t, %v", did, err)
	}
	checkPublished(t, out, files{}.withPlans([]Plan{state1(), {Steps: state2().Steps[:1]}, kept(state2())}))
}
