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

// DecisionsInForce means that earlier decisions of operators are in force at the start of a watch or server. If a
// change waits for an approval, the event names the change, too. The keys have the texts of xdspub status.
//
// Do: `xdspub status --out OUT` says how to end each of them.
type DecisionsInForce struct {
	Paused   string `event:"optional"` // who has paused publishing, since when, and why
	Pinned   string `event:"optional"` // the entry of a rollback, and who has rolled back, since when, and why
	Trial    string `event:"optional"` // the snapshot that awaits confirmation, and until when
	Guarded  string `event:"optional"` // the change that waits for an approval
	Approved string `event:"optional"` // the change of an unused approval, and who has approved it, since when, and why
}

func (DecisionsInForce) kind() Kind {
	return Kind{"decisions-kept", slog.LevelWarn, "decisions of operators from before this start are in force"}
}

// Resumed means that an operator has ended the pause and the pin. The watch publishes the source tree.
type Resumed struct {
	By          string    // user@host of the operator who ended the pause
	PausedBy    string    `event:"optional"` // the operator who began the pause
	PausedSince time.Time `event:"optional"`
	Reason      string    `event:"optional"` // the reason of the pause
	PinnedBy    string    `event:"optional"` // the operator who rolled back
	PinnedSince time.Time `event:"optional"`
	PinReason   string    `event:"optional"` // the reason of the rollback
}

func (Resumed) kind() Kind {
	return Kind{"resumed", slog.LevelInfo, "an operator lets the source tree be published again"}
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

// SnapshotWaits means that a decision of an operator, such as a pause, or a freeze keeps a valid snapshot of the source
// tree from being published.
//
// Do: `xdspub status` names the operator or the freeze, and the reason. `xdspub resume --out OUT` publishes the
// snapshot, during a freeze with `--reason TEXT`.
type SnapshotWaits struct {
	Snapshot  string // the id of the snapshot that waits
	Published string // the id of the published snapshot
}

func (SnapshotWaits) kind() Kind {
	return Kind{"snapshot-waits", slog.LevelWarn, "the snapshot waits: an operator or a freeze keeps it from being published"}
}

// Pinned means that an operator rolls back: the watch publishes a snapshot of the history, and pins the snapshot. The
// source tree waits until the tree changes, or until somebody resumes.
//
// Do: correct the source tree. `xdspub resume --out OUT` publishes the source tree as it is.
type Pinned struct {
	By        string    // user@host of the operator
	Reason    string    // the reason that the operator gave
	Entry     string    // the entry of the history
	Snapshot  string    // the id of the snapshot of the entry
	EntryTime time.Time // when that snapshot was published
}

func (Pinned) kind() Kind {
	return Kind{"pinned", slog.LevelWarn, "rolling back to a snapshot of the history, which is pinned"}
}

// PinRefused means that the snapshot of a rollback could not be published, because Envoy rejected the snapshot. The
// snapshot before the rollback is published.
//
// Do: the findings after the event have Envoy's reason. Roll back to another entry.
type PinRefused struct {
	By, Reason string // of the rollback
	Entry      string // the entry of the history
	Snapshot   string // the id of the snapshot of the entry
}

func (PinRefused) kind() Kind {
	return Kind{"pin-refused", slog.LevelError, "the rollback is refused; the snapshot before the rollback is published"}
}

// PinEnded means that the source tree has changed since a rollback, and is published. The pin has ended.
type PinEnded struct {
	By     string // the operator who rolled back
	Since  time.Time
	Reason string // the reason of the rollback
	Entry  string // the entry of the history
}

func (PinEnded) kind() Kind {
	return Kind{"pin-ended", slog.LevelInfo, "the source tree has changed since the rollback, and is published"}
}

// Frozen means that a window of the setting freeze has begun. The watch reads and checks the source tree, and publishes
// no change until the window ends.
type Frozen struct {
	Since     time.Time // when the window began
	Until     time.Time // when the freeze ends, in its time zone
	Zone      string    // the time zone of the window
	Reason    string    `event:"optional"` // the reason in the settings
	Published string    `event:"optional"` // the id of the published snapshot
}

func (Frozen) kind() Kind {
	return Kind{"frozen", slog.LevelInfo, "a freeze has begun; changes of the source tree wait"}
}

// FreezeEnded means that a freeze is over: its window has ended, or the settings no longer have the window. The watch
// publishes the source tree.
type FreezeEnded struct {
	Since  time.Time // when the window began
	Until  time.Time
	Reason string `event:"optional"`
}

func (FreezeEnded) kind() Kind {
	return Kind{"freeze-ended", slog.LevelInfo, "the freeze is over; publishing goes on"}
}

// FreezeOverridden means that an operator publishes the source tree during a freeze. The next change waits again.
type FreezeOverridden struct {
	By     string    // user@host of the operator
	Reason string    // the reason that the operator gave
	Until  time.Time // when the freeze ends
}

func (FreezeOverridden) kind() Kind {
	return Kind{"freeze-overridden", slog.LevelWarn, "an operator publishes the source tree during a freeze"}
}

// Guarded means that the guards refuse to publish the source tree, because the change removes too much. The findings
// before the event have the details.
//
// Do: look for an unfinished checkout, a failed generator or a mistyped parameter. If somebody means the change,
// `xdspub approve CHANGE --out OUT` lets the change through.
type Guarded struct {
	Change    string // the id of the change
	What      string // what the change removes
	Published string // the id of the published snapshot, which stays
}

func (Guarded) kind() Kind {
	return Kind{"guarded", slog.LevelWarn, "the change removes too much, and waits for an approval"}
}

// Approved means that an operator has approved a change that the guards have refused. The change is published once.
type Approved struct {
	By        string // user@host of the operator
	Reason    string // the reason that the operator gave
	Change    string // the id of the change
	What      string // what the change removes
	Published string // the id of the published snapshot
}

func (Approved) kind() Kind {
	return Kind{"approved", slog.LevelWarn, "an operator approves a change that the guards have refused"}
}

// ApprovalUsed means that an approved change is published. The approval has ended.
type ApprovalUsed struct {
	By       string // the operator who approved the change
	Since    time.Time
	Reason   string // the reason of the approval
	Change   string // the id of the change
	Snapshot string // the id of the published snapshot
}

func (ApprovalUsed) kind() Kind {
	return Kind{"approval-used", slog.LevelInfo, "the approved change is published"}
}

// ApprovalVoid means that an approval has ended without use, because the source tree has changed.
//
// Do: if the guards also refuse the new change, look at what it removes. If you mean it, approve the id of the new
// change.
type ApprovalVoid struct {
	By     string // the operator who approved the change
	Since  time.Time
	Reason string // the reason of the approval
	Change string // the id of the approved change
	Cause  string // why the approval is void
}

func (ApprovalVoid) kind() Kind {
	return Kind{"approval-void", slog.LevelWarn, "an approval is void, because the source tree has changed"}
}

// ApprovalWithdrawn means that an operator has withdrawn an approval before its use. The change waits for an approval
// again.
type ApprovalWithdrawn struct {
	By             string // user@host of the operator
	Reason         string // the reason that the operator gave
	ApprovedBy     string // the operator who approved the change
	ApprovedSince  time.Time
	ApprovedReason string // the reason of the approval
	Change         string // the id of the change
	Published      string // the id of the published snapshot, which stays
}

func (ApprovalWithdrawn) kind() Kind {
	return Kind{"approval-withdrawn", slog.LevelInfo, "an operator has withdrawn an approval; the change waits again"}
}

// AwaitsConfirmation means that a snapshot is published, and undone again unless an operator confirms it in time
// (--confirm-within).
//
// Do: try whether all works. `xdspub confirm --out OUT SNAPSHOT` keeps the snapshot, `xdspub cancel --out OUT` undoes
// the snapshot at once, and `xdspub extend --out OUT TIME` gives you more time.
type AwaitsConfirmation struct {
	Snapshot string    // the id of the published snapshot
	Until    time.Time // when the snapshot is undone
	Entry    string    // the entry of the history that is published again then
}

func (AwaitsConfirmation) kind() Kind {
	return Kind{"awaits-confirmation", slog.LevelWarn, "the snapshot is undone unless an operator confirms it in time"}
}

// Confirmed means that an operator has confirmed a snapshot. The snapshot stays.
type Confirmed struct {
	By, Reason string
	Snapshot   string // the id of the published snapshot
}

func (Confirmed) kind() Kind {
	return Kind{"confirmed", slog.LevelInfo, "an operator has confirmed the snapshot, which stays"}
}

// ConfirmationExtended means that an operator has set the time at which a snapshot is undone.
type ConfirmationExtended struct {
	By, Reason string
	Snapshot   string    // the id of the published snapshot
	Until      time.Time // when the snapshot is undone
}

func (ConfirmationExtended) kind() Kind {
	return Kind{"confirmation-extended", slog.LevelInfo, "an operator has set when the snapshot is undone"}
}

// Undoing means that a snapshot is undone, because nobody has confirmed it in time, or because an operator has
// cancelled it. The watch publishes the snapshot before, and pins that. The source tree waits until the tree changes,
// or until somebody resumes.
//
// Do: correct the source tree. `xdspub resume --out OUT` publishes the source tree as it is, for another trial.
type Undoing struct {
	By, Reason string // who has published, or who has cancelled
	Snapshot   string // the id of the snapshot that was not confirmed
	Entry      string // the entry of the history that is published again
	EntryTime  time.Time
}

func (Undoing) kind() Kind {
	return Kind{"undoing", slog.LevelWarn, "the snapshot is not confirmed; publishing the snapshot before"}
}

// UndoFailed means that a snapshot that nobody has confirmed stays published, because the snapshot before can't be
// published: the rules of today find errors, Envoy rejects the snapshot, or its entry of the history is damaged.
//
// Do: `xdspub rollback --out OUT ID` publishes another entry, `xdspub confirm` keeps what is published, and
// `xdspub cancel` tries again.
type UndoFailed struct {
	Snapshot string // the id of the published snapshot
	Entry    string // the entry of the history
	Cause    string // why the entry can't be published
}

func (UndoFailed) kind() Kind {
	return Kind{"undo-failed", slog.LevelError, "the snapshot that nobody has confirmed can't be undone, and stays published"}
}

// NothingToUndo means that a snapshot needs no confirmation in spite of --confirm-within, because nothing was published
// before to which an undo could go back. The snapshot stays.
//
// Do: nothing. The next change awaits a confirmation.
type NothingToUndo struct {
	Snapshot string // the id of the published snapshot
	Cause    string // why no earlier snapshot can be published
}

func (NothingToUndo) kind() Kind {
	return Kind{"nothing-to-undo", slog.LevelWarn, "the snapshot stays without a confirmation, because there is nothing to go back to"}
}
