package publish

import (
	"context"
	"fmt"
	"time"

	"xdspub/diag"
	"xdspub/event"
)

// Confirmer asks Envoy whether it accepts the files of a step. Publish, and a rollback, call a Confirmer
// around each step that moves files.
type Confirmer interface {
	// Before is called after staging and before the files of s move. An error stops the publish.
	Before(ctx context.Context, s Step) error
	// After is called when the files have moved and are durable. answered reports whether an Envoy answered. A
	// *RefusedError rolls the steps back; any other error stops the publish after s.
	After(ctx context.Context, s Step) (answered bool, err error)
}

// RefusedError means that Envoy refused a step. Publish returns it after the rollback. The rollback leaves a
// file that was edited by hand before it moved, and the files that moved earlier, because the edited file may
// name them.
type RefusedError struct {
	// Refusal goes on record.
	Refusal Refusal
	// Keep names files that existed before the change, and that the rollback leaves with their new content:
	// Envoy has accepted this content, and the previous snapshot works with it, too.
	Keep []string
	// Again, unless 0, means that Envoy may accept the step later. Publish then renames the files of the step
	// once more after that time, and rolls nothing back. A rollback ignores Again.
	Again time.Duration
}

func (e *RefusedError) Error() string {
	if len(e.Refusal.Findings) == 0 {
		return fmt.Sprintf("step %s: Envoy refused it", e.Refusal.Step)
	}
	return fmt.Sprintf("step %s: Envoy refused it: %s", e.Refusal.Step, e.Refusal.Findings[0].Message)
}

// Findings returns Envoy's reasons.
func (e *RefusedError) Findings() diag.List { return e.Refusal.Findings }

// undoing is the Confirmer of a rollback: it waits like the other Confirmer but ignores a refusal, because
// nothing else can be done if Envoy refuses its previous files.
type undoing struct {
	Confirmer
	ctx context.Context // the caller's: its end ends the waits and not the rollback
	d   *Dir
}

func (u undoing) Before(_ context.Context, s Step) error {
	if err := u.Confirmer.Before(u.ctx, s); err != nil {
		u.d.log.Write(event.RollbackUnconfirmed{Step: s.Name, Error: err})
	}
	return nil
}

func (u undoing) After(_ context.Context, s Step) (answered bool, err error) {
	answered, err = u.Confirmer.After(u.ctx, s)
	if err != nil {
		u.d.log.Write(event.RollbackUnconfirmed{Step: s.Name, Error: err})
	}
	return answered, nil
}
