// Package trial asks the user's Envoy about a bootstrap by envoy --mode validate. In this mode, Envoy reads the
// bootstrap, but no file that the bootstrap subscribes to, and opens no listener. It runs the Lua code of the
// bootstrap. The time and the output of Envoy are bounded, and no process of Envoy outlives the call.
//
// Envoy.Load starts an Envoy that loads also the files that the bootstrap subscribes to, and ends the Envoy.
//
//	findings, err := trial.Envoy{Program: "envoy"}.Validate(ctx, "envoy.yaml", "envoy.yaml")
package trial

import (
	"context"
	"fmt"
	"os/exec"
	"time"

	"xdspub/diag"
)

// Codes are the codes of the findings of this package.
var Codes = []diag.Code{codeRefused}

var codeRefused = diag.Code{Name: "refused-by-mode-validate", Doc: `Envoy does not take a bootstrap.

With --envoy FILE, xdspub bootstrap envoy has that program judge what it would write, by envoy
--mode validate. The finding quotes Envoy; xdspub writes no file. Envoy reads the files that the
bootstrap names, so with --out, publish before. It makes the access log that the bootstrap names for
admin, runs the Lua code in the bootstrap, and opens no address.`}

// The bounds of one question.
const (
	patience  = 3 * time.Minute // Envoy needs a second, unless the machine is busy
	goodbye   = 5 * time.Second // from SIGTERM to SIGKILL
	maxOutput = 1 << 20         // bytes
)

// Envoy is a program of Envoy.
type Envoy struct {
	// Program is its path, or a name in PATH.
	Program string
	// Patience is the time limit; 0 means three minutes.
	Patience time.Duration
}

// Find returns the Envoy with a path, or with a name that PATH finds. The error is not nil if no such program exists.
func Find(name string) (Envoy, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return Envoy{}, fmt.Errorf("find Envoy: %w", err)
	}
	return Envoy{Program: path}, nil
}

// Validate asks Envoy about the bootstrap at path by envoy --mode validate. If Envoy refuses the bootstrap, the
// findings have one finding with the refusal, in the file called name. The error is not nil if Envoy crashes, hangs
// or gives no answer, or if ctx has ended. Envoy ends with ctx.
func (e Envoy) Validate(ctx context.Context, path, name string) (diag.List, error) {
	r := e.validate(ctx, path)
	switch answer, err := r.answer(ctx); {
	case err != nil:
		return nil, err
	case answer.Refusal != "":
		return diag.List{{Code: codeRefused.Name, Position: diag.Position{File: name}, Message: "Envoy refuses " +
			"the bootstrap: " + diag.ClipLine(answer.Refusal, diag.MaxText)}}, nil
	case !answer.Taken():
		return nil, r.failed(r.err)
	}
	return nil, nil
}
