package clients

import (
	"fmt"

	"xdspub/diag"
)

// RefusedError means that so many clients rejected a snapshot that the quorum can't be met.
type RefusedError struct {
	Findings diag.List
	// TakenBack means that the server serves the previous snapshot again. It is false for the first snapshot.
	TakenBack bool
}

func (e *RefusedError) Error() string {
	if len(e.Findings) == 0 {
		return "the clients rejected the snapshot"
	}
	return fmt.Sprintf("the clients rejected the snapshot: %s", e.Findings[0].Message)
}
