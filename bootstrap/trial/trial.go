// Package trial has a program of Envoy judge a bootstrap, by its --mode validate: that reads what
// the bootstrap itself says, and no file that it subscribes to, and opens no listener. The program
// is the user's own, and still bounded, in its time and in what it prints.
//
//	findings, err := trial.Envoy{Program: "envoy"}.Validate(ctx, "envoy.yaml", "envoy.yaml")
package trial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"xdspub/diag"
	"xdspub/internal/bounded"
)

// Codes are the codes of the findings of this package.
var Codes = []diag.Code{codeRefused}

var codeRefused = diag.Code{Name: "refused-by-mode-validate", Doc: `Envoy does not take a bootstrap.

With --envoy FILE, xdspub bootstrap envoy has that program judge what it would write, by envoy --mode
validate. The message is Envoy's own; nothing is written. Envoy looks for the files that the bootstrap
names, which have to be there: with --out something must have been published. It makes the access log
that the bootstrap names for admin, runs the Lua code in the bootstrap, and opens no address.`}

// The bounds of one Validate.
const (
	patience  = time.Minute
	goodbye   = 5 * time.Second // from SIGTERM to SIGKILL
	maxOutput = 1 << 20
)

// Envoy is a program of Envoy.
type Envoy struct {
	// Program is its path, or a name in PATH.
	Program string
	// Patience is how long it may take; a minute where it is zero.
	Patience time.Duration
}

// Validate asks Envoy about the bootstrap at a path. The finding, for a file of this name, is that
// Envoy refuses it. An error means that Envoy could not be asked, or that ctx has ended, with which
// Envoy ends too.
func (e Envoy) Validate(ctx context.Context, path, name string) (diag.List, error) {
	limit := cmp.Or(e.Patience, patience)
	asked, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it did not end within %v", limit))
	defer cancel()
	cmd := exec.CommandContext(asked, e.Program, "--mode", "validate", "--config-path", path, "--disable-hot-restart", "--concurrency", "1", "--log-level", "critical")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = goodbye
	output := bounded.Buffer{Max: maxOutput}
	cmd.Stdout, cmd.Stderr = &output, &output
	err := cmd.Run()
	words := output.String()
	ended, exited := errors.AsType[*exec.ExitError](err)
	switch refusal := refusalOf(words, path); {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case asked.Err() != nil:
		return nil, e.failed(context.Cause(asked), words)
	case output.Full():
		return nil, e.failed(fmt.Errorf("it printed more than %d bytes", maxOutput), words)
	case err == nil && strings.Contains(words, "configuration '"+path+"' OK"):
		return nil, nil
	case err == nil:
		return nil, e.failed(errors.New("it ended without a word of the bootstrap: it is no Envoy"), words)
	case exited && ended.Exited() && refusal != "":
		return diag.List{{Code: codeRefused.Name, Position: diag.Position{File: name}, Message: "Envoy refuses the bootstrap: " + refusal}}, nil
	}
	return nil, e.failed(err, words)
}

// failed returns the error of an Envoy that does not say what it makes of the bootstrap.
func (e Envoy) failed(err error, words string) error {
	if words = diag.ClipLine(words, diag.MaxText); words != "" {
		words = "; it said: " + words
	}
	return fmt.Errorf("%s --mode validate: %w%s", e.Program, err, words)
}

// refusalOf returns why Envoy does not take the bootstrap at a path; empty where it does not say so.
func refusalOf(words, path string) string {
	_, refusal, _ := strings.Cut(words, "error initializing configuration '"+path+"': ")
	return diag.ClipLine(refusal, diag.MaxText)
}
