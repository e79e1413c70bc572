package publish

import (
	"errors"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// ensureFolder creates the folder name below OUT with its missing parents, and sets its mode and group.
// Existing parents stay unchanged.
func (d *Dir) ensureFolder(name string, mode fs.FileMode, gid int) error {
	f, err := d.root.folder(name)
	if errors.Is(err, fs.ErrNotExist) {
		f, err = d.makeFolders(name)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	return d.permit(f, mode, gid)
}

// makeFolders creates the folder name below OUT with its missing parents.
func (d *Dir) makeFolders(name string) (folder, error) {
	above := path.Dir(name)
	if _, err := d.root.stat(above); errors.Is(err, fs.ErrNotExist) {
		if err := d.ensureFolder(above, 0o755, anyGroup); err != nil {
			return folder{}, err
		}
	}
	in, err := d.root.folder(above)
	if err != nil {
		return folder{}, err
	}
	defer in.Close()
	return d.makeFolder(in, path.Base(name))
}

// makeFolder creates a folder. The folder is closed at first, because the umask may admit other users than the
// final mode.
func (d *Dir) makeFolder(in folder, name string) (folder, error) {
	if err := d.disk.Mkdir(in, name, 0o700); err != nil {
		return folder{}, err
	}
	if !d.bulk {
		if err := d.syncFolder(in); err != nil {
			return folder{}, err
		}
	}
	return in.folder(name)
}

// permit gives a folder its mode and group.
func (d *Dir) permit(f folder, mode fs.FileMode, gid int) error {
	info, err := f.info()
	if err != nil {
		return err
	}
	if gid != anyGroup && info.group != gid {
		if err := d.disk.Chown(f, gid); err != nil {
			return err
		}
	}
	if info.Mode.Perm() == mode {
		return nil
	}
	// setgid and sticky are the choice of whoever made OUT, and inherited.
	return d.disk.Chmod(f, mode|info.Mode&(fs.ModeSetgid|fs.ModeSticky))
}

// syncFolder makes the names in a folder durable.
func (d *Dir) syncFolder(in folder) error {
	f, err := d.disk.OpenFile(in, ".", os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	err = f.Sync()
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// sync makes the names in the folder name below OUT durable.
func (d *Dir) sync(name string) error {
	in, err := d.root.folder(name)
	if err != nil {
		return err
	}
	defer in.Close()
	return d.syncFolder(in)
}
