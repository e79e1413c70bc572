package trial

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"xdspub/internal/crash"
)

// longestSocket is the length of a Unix socket's path that every system allows.
const longestSocket = 100

// Throwaway is an Envoy that starts only to load a configuration.
type Throwaway struct {
	// Prepare writes files into an empty directory that only this user can read, and returns the path of the
	// bootstrap there. Load removes the directory after the Envoy ended.
	Prepare func(dir string) (bootstrap string, err error)
	// Ask asks the running Envoy. When Ask returns, the Envoy ends. When the Envoy ends first, ctx ends.
	Ask func(ctx context.Context) error
}

// Load starts an Envoy with the bootstrap of t, and returns Envoy's reaction and its log. Unlike Ask, Envoy also
// loads the files that the bootstrap subscribes to, and opens the ports of the listeners: the bootstrap must have
// none. The error is not nil if Envoy gave no answer, or if ctx has ended.
func (e Envoy) Load(ctx context.Context, t Throwaway) (answer Answer, log string, err error) {
	dir, err := privateDir()
	if err != nil {
		return Answer{}, "", err
	}
	remove := sweep(dir)
	defer remove()
	path, err := t.Prepare(dir)
	if err != nil {
		return Answer{}, "", err
	}
	running, end := context.WithCancel(ctx)
	defer end()
	asked := make(chan error, 1)
	go crash.Guard(func() {
		defer end()
		asked <- t.Ask(running)
	}, func(e *crash.Error) { asked <- e })()
	r := e.run(running, []string{"--config-path", path, "--component-log-level", "config:warning,upstream:warning"})
	r.path = path
	end()
	err = <-asked
	answer, err = r.loaded(ctx, err)
	return answer, r.output.String(), err
}

// loaded returns the Answer of a run. asked is the error of Throwaway.Ask.
func (r *run) loaded(ctx context.Context, asked error) (Answer, error) {
	exit, _ := errors.AsType[*exec.ExitError](r.err)
	switch {
	case ctx.Err() != nil:
		return Answer{}, ctx.Err()
	case asked == nil:
		return Answer{}, nil
	case !errors.Is(asked, context.Canceled) && (exit == nil || !died(exit)): // the Envoy did not end first
		return Answer{}, r.failed(asked)
	}
	return r.answer(ctx)
}

// died reports whether a process died by a signal other than SIGTERM and SIGKILL, which end a process on purpose.
func died(exit *exec.ExitError) bool {
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() != syscall.SIGTERM && status.Signal() != syscall.SIGKILL
}

// privateDir makes a directory that only this user can read, with a path short enough for Unix sockets.
func privateDir() (string, error) {
	const pattern = "xdspub-envoy-"
	dir, err := os.MkdirTemp("", pattern)
	if err == nil && len(filepath.Join(dir, "admin")) > longestSocket {
		os.Remove(dir)
		dir, err = os.MkdirTemp("/tmp", pattern)
	}
	if err != nil {
		return "", fmt.Errorf("make a directory for Envoy: %w", err)
	}
	return dir, nil
}

// sweep returns a function that removes a directory. If this process is killed first, a shell removes the
// directory: the shell waits for a line, and meets the end of the file instead. Without a shell, the directory then
// stays.
func sweep(dir string) (remove func()) {
	shell := exec.Command("/bin/sh", "-c", `read -r _ || { rm -rf -- "$0"; sleep 1; rm -rf -- "$0"; }`, dir)
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt from the terminal does not reach the shell
	line, err := shell.StdinPipe()
	if err == nil {
		err = shell.Start()
	}
	return func() {
		os.RemoveAll(dir)
		if err == nil {
			_, _ = strings.NewReader("\n").WriteTo(line)
			_ = shell.Wait()
		}
	}
}
