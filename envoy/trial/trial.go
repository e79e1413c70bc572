// Package trial has a program of Envoy judge a bootstrap, by its --mode validate: that reads what
// the bootstrap itself says, and no file that it subscribes to, and opens no listener. It does run
// the Lua code of the bootstrap. The program is the user's own, and still bounded, in its time and
// in what it prints, and nothing of it outlives the question.
//
// Load has an Envoy load a bootstrap instead, with the files that it subscribes to, and ends it.
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
	patience  = 3 * time.Minute // for what takes a second: the machine may be busy
	goodbye   = 5 * time.Second // from SIGTERM to SIGKILL
	maxOutput = 1 << 20
)

// Envoy is a program of Envoy.
type Envoy struct {
	// Program is its path, or a name in PATH.
	Program string
	// Patience is the time limit; 0 means three minutes.
	Patience time.Duration
}

// Find returns the Envoy at a path, or of a name in PATH. The error is not nil if no such program exists.
func Find(name string) (Envoy, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return Envoy{}, fmt.Errorf("find Envoy: %w", err)
	}
	return Envoy{Program: path}, nil
}

// Validate asks Envoy about the bootstrap at a path. If Envoy refuses the bootstrap, the findings have the
// refusal, with the file's name. The error is not nil if Envoy could not be asked, or if ctx has ended, which
// ends Envoy too.
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
