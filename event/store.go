package event

import "log/slog"

// StoreTerm means that this process is now the only writer of a target in the store.
type StoreTerm struct {
	Store string // the address of --store
}

func (StoreTerm) kind() Kind {
	return Kind{"store-term", slog.LevelInfo, "this process is now the writer of the target in the store"}
}

// StoreHasWriter means that another process is the writer of the target in the store. This process publishes its
// files, but not in the store, until the other writer has ended.
//
// Do: if two watches publish for the same target of the store by mistake, stop one of them.
type StoreHasWriter struct {
	Store  string // the address of --store
	Writer string // the user@host of the other writer
}

func (StoreHasWriter) kind() Kind {
	return Kind{"store-has-writer", slog.LevelWarn, "another process is the writer of the target in the store; this process waits"}
}

// StorePublished means that the published snapshot is in the store. The machines of the fleet get the snapshot.
type StorePublished struct {
	Store    string // the address of --store
	Snapshot string // the id of the snapshot
	Name     string `event:"optional"` // with --encrypt-secrets, the name of the snapshot in the store
	Bytes    int64  // the bytes of the change in the store
}

func (StorePublished) kind() Kind {
	return Kind{"store-published", slog.LevelInfo, "the snapshot is in the store"}
}

// StoreWentBack means that the head in the store is older than the head that this machine has: somebody has restored a
// backup of the etcd. What is published stays until the writer moves the head.
//
// Do: start the writer, `xdspub watch --store`, or see in its log why it does not publish.
type StoreWentBack struct {
	Store  string // the address of the store
	Serial int64  // the serial of the head in the store
	Has    int64  // the serial of the head on this machine
}

func (StoreWentBack) kind() Kind {
	return Kind{"store-went-back", slog.LevelWarn, "the store has an older head; what is published stays"}
}

// StoreFailed means that the store can't be read or written. A writer publishes its files, and tries again. A follower
// keeps what is published, and tries again. The same error is logged once.
//
// Do: `error` names the remedy. `etcdctl endpoint status --cluster` and `etcdctl alarm list` show what the etcd
// lacks.
type StoreFailed struct {
	Store string // the address of the store
	Error error
}

func (StoreFailed) kind() Kind {
	return Kind{"store-failed", slog.LevelWarn, "the store can't be used; what is published stays, and xdspub tries again"}
}

// RolloutWave means that the machines of a wave get the snapshot of a rollout.
type RolloutWave struct {
	Store    string // the address of --store
	Snapshot string // the id of the snapshot
	Wave     int    // the number of the wave, from 1
	Waves    int    // the number of waves
	Machines string // the name of the wave, or which machines are in the wave
}

func (RolloutWave) kind() Kind {
	return Kind{"rollout-wave", slog.LevelInfo, "the machines of a wave get the snapshot"}
}

// RolloutWaits means that a rollout waits for an operator: rollouts are paused or frozen, no machine of the wave
// answers, or a check can't tell. The machines keep their snapshots.
//
// Do: `reason` says what the rollout waits for. `xdspub rollout status` shows whether the rollout still waits.
type RolloutWaits struct {
	Store    string // the address of --store
	Snapshot string // the id of the snapshot
	Wave     int    // the number of the wave, from 1; 0 if the rollout has not begun
	Waves    int    // the number of waves
	Reason   string // what the rollout waits for
}

func (RolloutWaits) kind() Kind {
	return Kind{"rollout-waits", slog.LevelWarn, "the rollout waits for an operator"}
}

// RolloutTakenBack means that all machines get the snapshot before the rollout again: a machine has refused the new
// snapshot, a check has failed, or an operator has aborted the rollout. The writer keeps its own files.
//
// Do: correct the source tree. If `reason` has another cause, correct the cause, and run `xdspub rollout resume`, which
// begins the rollout again.
type RolloutTakenBack struct {
	Store    string // the address of --store
	Snapshot string // the id of the refused snapshot
	Base     string // the id of the snapshot that all machines get
	Wave     int    // the number of the last wave that had the snapshot, from 1
	Waves    int    // the number of waves
	Reason   string // who has refused the snapshot, and why
}

func (RolloutTakenBack) kind() Kind {
	return Kind{"rollout-taken-back", slog.LevelError, "the snapshot was taken back; all machines get the snapshot before"}
}

// RolloutDone means that the last wave of a rollout has acknowledged the snapshot. The snapshot is now that of the
// whole fleet.
type RolloutDone struct {
	Store    string // the address of --store
	Snapshot string // the id of the snapshot
}

func (RolloutDone) kind() Kind {
	return Kind{"rollout-done", slog.LevelInfo, "all waves have the snapshot"}
}
