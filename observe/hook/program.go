package hook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"xdspub/diag"
	"xdspub/event"
)

// maxSaid is how much of the end of a program's standard error an event has, in bytes.
const maxSaid = 1 << 10

// program runs a Command.
type program struct {
	Command
	times Times
}

// String returns the program without its arguments.
func (p *program) String() string { return p.path }

func (p *program) failed(err error, lost int) event.Event {
	return event.HookFailed{Program: p.path, Error: err, Lost: lost}
}

// send runs the program with the event on its standard input.
func (p *program) send(ctx context.Context, i item) error { return p.run(ctx, i.json, false) }

// run runs the program with a line on its standard input. The error has the end of the standard error and, if both is
// true, of the standard output. The processes of the program have a group of their own, and run kills all that remain
// in the group.
func (p *program) run(ctx context.Context, line []byte, both bool) error {
	limited, cancel := context.WithTimeout(ctx, p.times.Timeout)
	defer cancel()
	said := tail{most: maxSaid}
	cmd := exec.CommandContext(limited, p.path, p.args...)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(append(line[:len(line):len(line)], '\n')), &said
	if both {
		cmd.Stdout = &said
	}
	cmd.SysProcAttr = processAttributes()
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = p.times.Grace
	// On Linux, a child dies with the thread that started it. This thread stays until the child has ended.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return err
	}
	err := cmd.Wait()
	endGroup(cmd.Process.Pid)
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay): // a process that stays behind held the standard error
		return nil
	case ctx.Err() != nil:
		return errors.New("xdspub ends, and has killed the program")
	case limited.Err() != nil:
		err = fmt.Errorf("the program did not end within %v, and was killed", p.times.Timeout)
	}
	if words := diag.Hide(diag.ClipLine(said.String(), maxSaid)); words != "" {
		return fmt.Errorf("%w; it said: %s", err, words)
	}
	return err
}

// endGroup kills the processes of a group, and takes their statuses if they are children of this process: as the first
// process of a container, xdspub gets the children of ended processes.
func endGroup(group int) {
	if syscall.Kill(-group, syscall.SIGKILL) != nil {
		return // the group is empty
	}
	for range 100 {
		pid, err := syscall.Wait4(-group, nil, syscall.WNOHANG, nil)
		if err != nil && !errors.Is(err, syscall.EINTR) {
			return // the children belong to another process
		}
		if pid == 0 {
			time.Sleep(time.Millisecond) // a killed process is about to end
		}
	}
}

// tail keeps the last bytes of its input.
type tail struct {
	most int
	text []byte
}

// Write adds p, and keeps the last bytes.
func (t *tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p...)
	if extra := len(t.text) - t.most; extra > 0 {
		t.text = append(t.text[:0], t.text[extra:]...)
	}
	return len(p), nil
}

// String returns the kept bytes as UTF-8.
func (t *tail) String() string { return string(bytes.ToValidUTF8(t.text, nil)) }
