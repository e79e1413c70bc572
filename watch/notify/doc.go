// Package notify turns directories into "changed" signals.
//
// A signal says only: look again. Editors save by writing in place, by renaming over,
// or by moving the old file away first; events of one save come in different orders on
// different systems; a queue that is full drops them; a folder may be filled
// between its creation and our watch on it. So the sequence of events is not
// interpreted: whatever happens below the root starts or prolongs a burst, and
// once the tree was quiet for a while (or the burst has lasted too long) there
// is one signal, and its receiver reads the tree as it stands then. There is one
// exception: a burst about one file ends soon after the file is whole: something is in it,
// and no process has it open for writing.
//
// [Watcher.Read] tells which paths changed, or that it can't know. That is where to
// look, and not what happened.
//
// Folders are watched, not files: a watch on a file dies with its inode, which
// is what most editors and every publisher by rename replace. New folders are
// followed at once, so that the files still being copied into them prolong the
// burst. Links are followed, and each place on their way is watched: the root
// itself may be one, or stand behind one, that a deployment turns elsewhere.
//
// A checkout by git is one change. While a git command holds the index.lock of a
// work tree, there is no signal; [Watcher.Read] keeps those out who read without
// one.
//
// Watches get lost, too: a file system is mounted over a folder, one further up
// is moved away. Therefore all of them are thrown away and made again at every
// rescan, which always ends in a signal, once the tree is quiet: an event that the old
// watches had may be lost, and with it that an editor is in the midst of a save. What no event can tell is at most one
// rescan late. That goes for files that are written through another hard link or
// on another machine; for network file systems there is Options.Poll. Where the
// system's limits leave too few watches, the tree is polled until a rescan gets
// them all: never with some, because Envoy needs watches of the same user, and
// aborts when it gets none.
//
//	w, err := notify.New(ctx, "/etc/xds", notify.Options{})
//	if err != nil { … }
//	go w.Run(ctx)
//	for range w.Signals() { // ends with ctx
//		w.Read(ctx, func(c notify.Changes) { read("/etc/xds", c) })
//	}
package notify
