package event

import (
	"log/slog"
	"time"
)

// Paused means that an operator has paused publishing. The watch goes on to read and to check the source tree.
//
// Do: `xdspub resume --out OUT` publishes what waits.
type Paused struct {
	By        string    // user@host of the operator
	Reason    string    // the reason that the operator gave
	Until     time.Time `event:"optional"` // when the pause ends by itself
	Published string    // the id of the published snapshot, which stays
}

func (Paused) kind() Kind {
	return Kind{"paused", slog.LevelWarn, "publishing is paused; no published file changes"}
}

// Resumed means that an operator has ended the pause. The watch publishes the source tree.
type Resumed struct {
	By          string    // user@host of the operator who ended the pause
	PausedBy    string    `event:"optional"` // the operator who began the pause
	PausedSince time.Time `event:"optional"`
	Reason      string    `event:"optional"` // the reason of the pause
}

func (Resumed) kind() Kind {
	return Kind{"resumed", slog.LevelInfo, "the pause has ended; publishing goes on"}
}

// PauseEnded means that the time of a pause is over. The watch publishes the source tree.
type PauseEnded struct {
	By     string // the operator who began the pause
	Since  time.Time
	Reason string // the reason of the pause
}

func (PauseEnded) kind() Kind {
	return Kind{"pause-ended", slog.LevelInfo, "the time of the pause is over; publishing goes on"}
}

// SnapshotWaits means that a decision of an operator, such as a pause, keeps a valid snapshot of the source tree from
// being published.
//
// Do: `xdspub status` names the operator and the reason. `xdspub resume --out OUT` publishes the snapshot.
type SnapshotWaits struct {
	Snapshot  string // the id of the snapshot that waits
	Published string // the id of the published snapshot
}

func (SnapshotWaits) kind() Kind {
	return Kind{"snapshot-waits", slog.LevelWarn, "the snapshot waits: an operator keeps it from being published"}
}
