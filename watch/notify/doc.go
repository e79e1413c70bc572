// Package notify turns changes in a directory into signals.
//
// A signal means only: read the tree again. Package notify does not interpret the sequence of events, because
// the sequence proves little. Editors save a file by writing in place, by renaming over it, or by moving the
// old file away first. The events of one save come in different orders on different systems. A full queue
// drops events. A new folder may be filled before its watch exists.
//
// Instead, any event below the root begins or prolongs a burst. When the tree has been quiet for a while, or
// the burst has lasted too long, the Watcher sends one signal, and the receiver reads the current tree. As an
// exception, a burst about one file ends soon after the file is complete: the file is not empty, and no
// process has it open for writing.
//
// [Watcher.Read] tells the reader which paths to read again, or that any path may have changed.
//
// Package notify watches folders, not files: the watch on a file ends with its inode, and most editors and
// all publishers by rename replace the inode. The Watcher follows new folders at once, so that files still
// being copied into them prolong the burst. The Watcher follows symbolic links and watches each folder on
// their way. The root itself may be a link or lie behind a link that a deployment changes.
//
// A checkout by git is one change. While a git command holds the index.lock of a work tree, the Watcher sends
// no signal, and [Watcher.Read] waits.
//
// Watches can get lost, for example when a file system is mounted over a folder or a folder further up moves.
// Therefore each rescan removes and creates all watches. A rescan always ends in a signal once the tree is
// quiet, because the old watches may have lost an event, for example that an editor is in the middle of a
// save. A change without an event is at most one rescan late; this includes changes through another hard link
// or on another machine. For network file systems use Options.Poll.
//
// If the system's limits leave too few watches, the Watcher polls the tree until a rescan gets all watches.
// It never keeps a part of them, because Envoy needs watches of the same user and aborts without them.
//
//	w, err := notify.New(ctx, "/etc/xds", notify.Options{})
//	if err != nil { … }
//	go w.Run(ctx)
//	for range w.Signals() { // ends with ctx
//		w.Read(ctx, func(c notify.Changes) { read("/etc/xds", c) })
//	}
package notify
