package publish

import (
	"io/fs"
	"os"
	"path/filepath"
)

// ensureFolder makes the folder name, and those above it that are missing, and
// gives it mode and group. Folders above it that exist are left as they are.
func (d *Dir) ensureFolder(name string, mode fs.FileMode, gid int) error {
	fi, err := statFolder(name)
	if err != nil {
		return err
	}
	if fi == nil {
		parent := filepath.Dir(name)
		if above, err := statFolder(parent); err != nil {
			return err
		} else if above == nil {
			if err := d.ensureFolder(parent, 0o755, anyGroup); err != nil {
				return err
			}
		}
		// Closed at first: whom the umask would let in is not who may come in.
		if err := d.disk.Mkdir(name, 0o700); err != nil {
			return err
		}
		if err := d.syncFolder(parent); err != nil {
			return err
		}
		if fi, err = os.Stat(name); err != nil {
			return err
		}
	}
	if gid != anyGroup && int(stat(fi).Gid) != gid {
		if err := d.disk.Chown(name, -1, gid); err != nil {
			return err
		}
	}
	if fi.Mode().Perm() == mode {
		return nil
	}
	// setgid and sticky are the choice of whoever made OUT, and inherited.
	return d.disk.Chmod(name, mode|fi.Mode()&(fs.ModeSetgid|fs.ModeSticky))
}

// syncFolder makes the names in a folder durable.
func (d *Dir) syncFolder(name string) error {
	f, err := d.disk.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	err = f.Sync()
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}
