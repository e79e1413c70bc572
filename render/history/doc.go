// Package history keeps the published snapshots of one output directory, so that a person can see what was out at a
// time, and publish it again.
//
//	.xdspub/history/                    0700, the files 0600: resources may hold secrets
//	0000000012-3fa94c1b07d2.entry       an entry, with the objects that no other file has
//	0000000001-9be1c5a04f31.objects     objects of pruned entries that later entries share
//	0000000012-3fa94c1b07d2.notes       later facts about the entry: its outcome, further commits
//
// The resources of an entry are a tree of objects, each named by its hash, as in git: an entry has the hash of its
// root, a branch the hashes of its children, and a leaf the names and hashes of resources. An object is stored once.
// So an edit of one of 10,000 clusters writes the cluster, a leaf and two branches.
//
//	store := history.Open(dir, history.Options{Keep: 50})
//	item, err := store.Record(history.Entry{Time: time.Now(), Command: "render", Snapshot: id}, snapshot)
//
//	h, err := history.Read("out")
//	item, err = h.At(time.Now().Add(-2 * time.Hour))
//	snapshot, err = h.Load(item.ID, nil)
//
// # Crashes
//
// Record writes one file for each publish, and renames the file into place: an entry is whole or absent. To prune an
// entry, Record renames its file to .objects. A sweep joins such files without the objects that no entry needs, and
// removes them once the new file is durable. So each crash leaves entries whole; an object may be stored twice until
// the next sweep.
//
// # Damage
//
// Each file ends with a hash of its bytes, and each object is checked against its name. A damaged file, or a file of
// a newer layout, stays where it is; its objects count as absent, so that later entries don't depend on them.
package history
