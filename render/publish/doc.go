// Package publish owns the output directory on disk. Package publish takes finished bytes, ordered in steps,
// and updates the directory so that Envoy, a crash, a full disk or a power loss never meets half a change: at
// every moment, each published file holds its old or its new bytes, whole.
//
//	OUT/cds/cds.json            one folder for each subscription, 0755
//	OUT/eds/web/eds.json        files 0644
//	OUT/sds/cert/sds.json       secrets 0640 in a folder 0750, with OUT's group
//	OUT/.xdspub/                0700: lock, manifest.json, files/, refused.json, intent, stage/, undo/
//
// # Why rename
//
// Envoy reloads a path-based subscription when a file is renamed onto the watched name, and at no other event:
// Envoy ignores writes, copies, links and unlinks. A rename also swaps one inode for another, so that the
// change is whole. So Publish writes every new byte under .xdspub/stage first, flushes the files, and reads
// them back; a full or damaged disk shows before the first published file moves. (For many files, Publish
// flushes the whole file system once, if the system can.) The stage is outside of every subscription's folder,
// because each write in a watched folder wakes every watcher of the folder.
//
// # Why one folder for each subscription, for ever
//
// Envoy watches the folder of a file. The watches of two files in one folder fire in no order, whatever the
// order of the renames, so Publish refuses a plan that puts two files into one folder. Publish never removes,
// renames or replaces a folder: Envoy would keep watching the dead inode, and silently miss every later
// update. Publish unlinks stale files and keeps their folders.
//
// # Why the folder is flushed as well
//
// fsync of a file makes its bytes durable, but not its name, because a rename changes the folder. Publish
// flushes the folders of a step before the next step begins. After a power loss, the disk holds a prefix of
// the plan, and never a listener without its cluster.
//
// # Steps
//
// Files of one step may move in any order; steps may not. Every prefix of a plan is a valid state. So a
// cancelled, failed or killed publish is not undone: the next one compares the plan with the disk and carries
// on. Publish does not touch a correct file, because even a rename of equal bytes makes Envoy reload.
//
// # Confirmation and rollback
//
// With a Confirmer in the Plan, each step waits for the Confirmer. When Envoy refuses a step, Publish rolls
// the steps back in reverse order; the replaced bytes were saved in .xdspub/undo before the first rename.
// Files that the change added stay, and are on record as retired. If a file must keep a part of its new
// content, the Plan has the bytes (Rollback). The snapshot is then held: .xdspub/refused.json stops the next
// run from publishing the snapshot again.
//
// The record .xdspub/intent holds the direction of a change. After a killed writer, the next one plans again
// from the files on disk, or completes the rollback. With a Confirmer, the next writer moves the killed
// writer's files once more, because nobody saw Envoy's answer.
//
// # Records in proportion to the change
//
// The manifest and the intent name every published file with a hash, and each change writes both records. With
// more than a few hundred files, the records refer to a base, .xdspub/files/<its hash>, which never changes,
// and hold the differences. When the differences have grown, the next change writes a new base before the
// manifest that refers to it. A base without a record is removed. So every crash leaves a manifest with its
// base.
//
// # Caveats
//
// The guarantees hold on a local file system. OUT, .xdspub and the subscription folders must be on one file
// system, because a rename can't cross file systems. The lock is flock(2): it binds the writers of one
// machine, and ends with its holder.
package publish
