package publish

// SetRevision records the commit of the source tree if the tree's snapshot is published, even if the commit
// changes nothing else. An empty commit changes nothing. Git may be slow, and no file waits for git, so the
// commit comes after the rest of the record.
func (d *Dir) SetRevision(snapshot, commit string) error {
	if err := d.usable("record the commit"); err != nil {
		return err
	}
	m, err := d.reader.manifestIn(d.root)
	if err != nil || m.Layout == 0 || m.Snapshot != snapshot || commit == "" || m.Revision == commit {
		return err
	}
	m.Revision = commit
	m = m.normal()
	if err := d.put(manifestPath, m); err != nil {
		return err
	}
	d.reader.wrote(d.root, m)
	return nil
}
