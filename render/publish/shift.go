package publish

import "time"

// Shift adds a duration to the times of retired files and clusters and of draining watches, in the manifest
// and in the intent, after somebody has set the clock forward.
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
		// A finished intent matches the record before the shift.
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
