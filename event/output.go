package event

import "log/slog"

// OutputReplaced means that somebody removed or replaced the output directory. The watch publishes all files
// again.
//
// Do: restart the Envoys that read the directory: they watch folders that no longer exist.
type OutputReplaced struct {
	Out string // the output directory, as it was given
}

func (OutputReplaced) kind() Kind {
	return Kind{"output-replaced", slog.LevelWarn, "the output directory was removed or replaced; publishing all files again"}
}

// StateReplaced means that somebody has removed or replaced the directory of serve --state. The history is lost.
// Clients keep their resources, and the decisions of operators stay in force.
//
// Do: find out who has removed the directory. To have the history again, stop the server, and copy the directory from a
// backup.
type StateReplaced struct {
	State string // the directory
}

func (StateReplaced) kind() Kind {
	return Kind{"state-replaced", slog.LevelWarn, "the directory of --state was removed or replaced; its history is lost"}
}

// PublishedFileUnreadable means that somebody has damaged a published file. The next publish replaces the file.
// A damage that stays, such as a folder in the place of the file, is logged once.
type PublishedFileUnreadable struct {
	File  string // below the output directory
	Error string // the fault
}

func (PublishedFileUnreadable) kind() Kind {
	return Kind{"published-file-unreadable", slog.LevelWarn, "a published file was changed by hand and can't be read; it is published again"}
}

// RetiredClusterDamaged means that somebody has edited a cluster that waits for its trim, and made it invalid.
// The cluster is removed now.
type RetiredClusterDamaged struct {
	Cluster string // the name of the cluster
	Error   string // the fault
}

func (RetiredClusterDamaged) kind() Kind {
	return Kind{"retired-cluster-damaged", slog.LevelWarn, "a cluster that waits for its trim was changed by hand and is invalid; the cluster is removed now"}
}

// RetiredFileMissing means that somebody has removed a file of a cluster that waits for its
// trim. The cluster is removed now: an Envoy that starts would refuse it.
type RetiredFileMissing struct {
	Cluster string // the name of the cluster
	File    string // below the output directory
}

func (RetiredFileMissing) kind() Kind {
	return Kind{"retired-file-missing", slog.LevelWarn, "a file of a cluster that waits for its trim was removed by hand; the cluster is removed now"}
}

// LeftoverStays means that a file of a killed process can't be removed from .xdspub. The file does no harm.
//
// Do: remove the file by hand, or remove the cause in error.
type LeftoverStays struct {
	Path  string // the path of the file or folder
	Error error  // the cause
}

func (LeftoverStays) kind() Kind {
	return Kind{"leftover-stays", slog.LevelWarn, "a leftover in .xdspub can't be removed and stays"}
}

// ForeignFolderRemoved means that somebody made a folder in .xdspub, and the watch has removed it.
type ForeignFolderRemoved struct {
	Path string // the path of the file or folder
}

func (ForeignFolderRemoved) kind() Kind {
	return Kind{"foreign-folder-removed", slog.LevelWarn, "removing a folder in .xdspub that xdspub did not make"}
}

// RecordIncomplete means that somebody removed or damaged the list of published files in the record. The watch
// has written the list again.
//
// Do: nothing, unless somebody changed a published file by hand meanwhile: the watch can't know.
type RecordIncomplete struct {
	Out string // the output directory
}

func (RecordIncomplete) kind() Kind {
	return Kind{
		"record-incomplete", slog.LevelWarn,
		"the list of published files was removed or damaged, so changes by hand are not known; it is written again",
	}
}

// HoldsLost means that the record of held snapshots is damaged. A snapshot that Envoy rejected
// may be published once more.
type HoldsLost struct {
	Error error // the cause
}

func (HoldsLost) kind() Kind {
	return Kind{"holds-lost", slog.LevelWarn, "the record of held snapshots is damaged and begins again"}
}
