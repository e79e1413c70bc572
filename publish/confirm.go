package publish

import (
	"context"
	"fmt"

	"xdspub/diag"
)

// Confirmer sees whether Envoy takes the files of a step in. It is asked around
// each step that moves something, on the way to a snapshot and on the way back.
type Confirmer interface {
	// Before is called when all is ready and the files of s are about to move. An
	// error stops the publish there.
	Before(ctx context.Context, s Step) error
	// After is called when they have moved, and are durable. It tells whether an
	// Envoy answered for them. A *RefusedError has the steps put back; any other
	// error stops the publish after s.
	After(ctx context.Context, s Step) (answered bool, err error)
}

// RefusedError says that Envoy refused a step. Publish returns it when what had
// gone out is put back. A file that was edited by hand before it moved is not put
// back, nor is what went out before it: it may be named there.
type RefusedError struct {
	// Refusal is what goes on record.
	Refusal Refusal
	// Keep names files that stay as they are where there was one before: Envoy has
	// taken them, and what was out before can live with them.
	Keep []string
}

func (e *RefusedError) Error() string {
	if len(e.Refusal.Findings) == 0 {
		return fmt.Sprintf("step %s: Envoy refused it", e.Refusal.Step)
	}
	return fmt.Sprintf("step %s: Envoy refused it: %s", e.Refusal.Step, e.Refusal.Findings[0].Message)
}

// Findings are what Envoy said.
func (e *RefusedError) Findings() diag.List { return e.Refusal.Findings }

// undoing is a Confirmer for the way back: it waits as the other one does, but
// there is nothing else to be done when Envoy refuses what it had before.
type undoing struct {
	Confirmer
	ctx context.Context // the caller's: its end ends the waiting and not the way back
	d   *Dir
}

func (u undoing) Before(_ context.Context, s Step) error {
	if err := u.Confirmer.Before(u.ctx, s); err != nil {
		u.d.log.Warn("nobody confirms what is put back", "step", s.Name, "error", err)
	}
	return nil
}

func (u undoing) After(_ context.Context, s Step) (answered bool, err error) {
	answered, err = u.Confirmer.After(u.ctx, s)
	if err != nil {
		u.d.log.Error("what is put back is not confirmed", "step", s.Name, "error", err)
	}
	return answered, nil
}
