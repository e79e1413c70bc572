// Package publish owns the output directory on disk. It takes finished bytes,
// ordered in steps, and brings the directory there in such a way that Envoy, a
// crash, a full disk or a lost power supply never meet half of anything: at
// every moment each published file holds its old or its new bytes, whole.
//
//	OUT/cds/cds.json            one folder for each subscription, 0755
//	OUT/eds/web/eds.json        files 0644
//	OUT/sds/cert/sds.json       secrets 0640 in a folder 0750, with OUT's group
//	OUT/.xdspub/                0700: lock, manifest.json, files/, refused.json, intent, stage/, undo/
//
// # Why rename
//
// Envoy reloads a path-based subscription when something is renamed onto the
// watched name, and at no other event: a write, a copy, a link or an unlink
// goes unseen. The rename is also what makes the change whole, since it swaps
// one inode for another. So every new byte is written under .xdspub/stage
// first, flushed, and read back; a disk that is full or damaged is found out
// there, before the first published file moves. (Of many files the whole file system is flushed
// once, where the system can.) The stage is no subscription's
// folder, as each write in a watched folder wakes every watcher of it.
//
// # Why one folder for each subscription, for ever
//
// Envoy watches the folder of a file, and the watches of two files that share
// a folder fire in no order, whatever order they were renamed in. A plan that
// puts two files into one folder is refused. A folder is never removed,
// renamed or replaced: the watch would stay on the dead inode, and Envoy would
// never see another update, without a word. Stale files are unlinked, their
// folders stay.
//
// # Why the folder is flushed as well
//
// fsync of a file makes its bytes durable, not its name: the rename is a change
// of the folder. The folders of one step are flushed before the next step
// begins, so that after a power loss the disk holds a prefix of the plan, and
// never a listener whose cluster got lost.
//
// # Steps
//
// Files of one step may go out in any order; steps may not. Every prefix of a
// plan is a valid state, so a publish that was cancelled, failed or was killed
// is not undone: the next one compares the plan with the disk and carries on.
// A file that is already right is not touched, since a rename of the same bytes
// would still make Envoy reload.
//
// # Confirmation and rollback
//
// With a Confirmer in the Plan each step waits for it. When Envoy refuses a step, Publish
// rolls the steps back in reverse order: the bytes that they replaced were saved in
// .xdspub/undo before the first one moved. Files that the change added stay, and are on
// record as retired. Where a file must keep a part of its new content, the Plan has the
// bytes for it (Rollback). The snapshot is then held: .xdspub/refused.json stops
// the next run from publishing it again.
//
// The record .xdspub/intent holds the direction of a change. When the writer is killed, the
// next one plans again from the files on disk, or completes the rollback. With a Confirmer
// it moves once more what the killed writer had moved, since nobody saw Envoy's answer.
//
// # Records in proportion to the change
//
// The manifest and the intent name every published file with a hash, and each change writes
// both. Of more than a few hundred files they refer to a base, .xdspub/files/<its hash>, which
// never changes, and hold what differs from it. When that has become much, the next change
// writes a new base before the manifest that refers to it; a base that no record refers to is
// removed. So every crash leaves a manifest with its base.
//
// # Caveats
//
// The guarantees are those of a local file system. OUT, .xdspub and the
// subscription folders must be on one file system, or there is no rename. The
// lock is flock(2): it binds the writers of one machine, and it dies with its
// holder.
package publish
