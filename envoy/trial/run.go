package trial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	"xdspub/diag"
	"xdspub/internal/bounded"
)

// run is an Envoy that was asked about the bootstrap at a path, and has ended.
type run struct {
	command, path string
	output        bounded.Buffer
	// err is the error of exec.Cmd, or the reason for late; nil if Envoy exited with status 0.
	err  error
	late bool // Envoy did not end within its time limit
}

// validate runs envoy --mode validate with the bootstrap at a path.
func (e Envoy) validate(ctx context.Context, path string, files ...*os.File) *run {
	r := e.run(ctx, []string{"--config-path", path, "--mode", "validate"}, files...)
	r.command, r.path = r.command+" --mode validate", path
	return r
}

// run runs an Envoy with arguments until it ends, ctx ends, or the time limit is over. The Envoy inherits files as
// its descriptors from 3 on. run closes files.
func (e Envoy) run(ctx context.Context, arguments []string, files ...*os.File) *run {
	limit := cmp.Or(e.Patience, patience)
	asked, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it did not end within %v", limit))
	defer cancel()
	r := &run{command: e.Program, output: bounded.Buffer{Max: maxOutput}}
	arguments = append(arguments, "--disable-hot-restart", "--concurrency", "1", "--log-level", "critical")
	cmd := exec.CommandContext(asked, e.Program, arguments...)
	cmd.ExtraFiles, cmd.SysProcAttr = files, processAttributes()
	cmd.Stdout, cmd.Stderr = &r.output, &r.output
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = goodbye
	// On Linux, a child dies with the thread that started it. This thread stays until the child has ended.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	r.err = cmd.Start()
	for _, f := range files {
		f.Close()
	}
	if r.err != nil {
		return r
	}
	r.err = cmd.Wait()
	if asked.Err() != nil { // a child of the program, which may be a script, may ignore SIGTERM
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	if ctx.Err() == nil && asked.Err() != nil {
		r.err, r.late = context.Cause(asked), true
	}
	return r
}

// failed returns the error of a run without a verdict, with the output of the program.
func (r *run) failed(err error) error {
	words := diag.Hide(diag.ClipLine(r.output.String(), diag.MaxText))
	if words != "" {
		words = "; it said: " + words
	}
	return fmt.Errorf("%s: %w%s", r.command, err, words)
}

// answer returns the run's verdict on the bootstrap. The error is not nil if the run has no verdict.
func (r *run) answer(ctx context.Context) (Answer, error) {
	words := r.output.String()
	exit, ended := errors.AsType[*exec.ExitError](r.err)
	_, refusal, _ := strings.Cut(words, "error initializing configuration '"+r.path+"': ")
	switch {
	case ctx.Err() != nil:
		return Answer{}, ctx.Err()
	case r.late:
		return Answer{Hang: r.err.Error()}, nil
	case r.output.Full():
		return Answer{}, r.failed(fmt.Errorf("it printed more than %d bytes", maxOutput))
	case r.err == nil && strings.Contains(words, "configuration '"+r.path+"' OK"):
		return Answer{}, nil
	case r.err == nil:
		return Answer{}, r.failed(errors.New("the program exited without judging the bootstrap: is it Envoy?"))
	case ended && exit.Exited() && refusal != "":
		return Answer{Refusal: refusal}, nil
	case ended && killed(exit):
		return Answer{Crash: exit.String() + lastWords(words)}, nil
	}
	return Answer{}, r.failed(r.err)
}

// killed reports whether a signal killed an Envoy. If a shell started the Envoy, the shell exits with a status
// above 128.
func killed(exit *exec.ExitError) bool { return !exit.Exited() || exit.ExitCode() > 128 }

// lastWords returns a log's message about a failed assertion, after "; "; empty without one.
func lastWords(log string) string {
	_, words, ok := strings.Cut(log, "assert failure: ")
	if !ok {
		return ""
	}
	line, _, _ := strings.Cut(words, "\n")
	return "; assert failure: " + line
}
