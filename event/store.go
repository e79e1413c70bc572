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
