package publish

// SetRevision records the commit of a snapshot, where that is published and no commit of it is
// on record. Git may be slow, and no file waits for it: so the commit comes after the rest of
// the record.
func (d *Dir) SetRevision(snapshot, commit string) error {
	if err := d.usable("record the commit"); err != nil {
		return err
	}
	m, err := d.reader.manifestIn(d.root)
	if err != nil || m.Layout == 0 || m.Snapshot != snapshot || m.Revision != "" || commit == "" {
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
