package publish

import "time"

// Shift moves the times of what goes and drains, on record and on that of a change under
// way: somebody has set the clock forward by so much.
func (d *Dir) Shift(by time.Duration) error {
	if err := d.usable("shift"); err != nil {
		return err
	}
	m, err := readManifest(d.root)
	if err != nil || m.Layout == 0 {
		return err
	}
	in, err := readIntent(d.root)
	if err != nil {
		return err
	}
	if in != nil {
		// One that is done is known by the record as it is.
		done, err := in.done(m)
		if err == nil && done {
			err = d.finish()
		} else if err == nil {
			in.Manifest = in.Manifest.shifted(by)
			err = d.put(intentPath, *in)
		}
		if err != nil {
			return err
		}
	}
	if shifted := m.shifted(by); !shifted.same(m) {
		return d.put(manifestPath, shifted.normal())
	}
	return nil
}
