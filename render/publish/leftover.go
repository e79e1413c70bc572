package publish

import (
	"errors"
	"io/fs"
	"path"
	"syscall"
)

// LockInode returns the inode of the lock file of the directory out; 0 without a lock file.
func LockInode(out string) (uint64, error) {
	return reading(out, func(root folder) (uint64, error) {
		info, err := root.stat(lockPath)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return info.Inode(), err
	})
}

// Leftovers returns the files in our own folders that no record needs. A process that publishes has such files. A
// killed process leaves them, and Open removes them.
func Leftovers(out string) ([]string, error) {
	return reading(out, func(root folder) (list []string, err error) {
		in, err := readIntent(root)
		if err != nil {
			return nil, err
		}
		m, err := readManifest(root)
		if err != nil {
			return nil, err
		}
		for name, needed := range map[string]map[string]bool{stagePath: nil, undoPath: in.needs(), basesPath: basesOf(m, in)} {
			there, err := root.unneeded(name, needed)
			if err != nil {
				return nil, err
			}
			list = append(list, there...)
		}
		return list, nil
	})
}

// unneeded returns the names in a folder that are not needed, as paths.
func (f folder) unneeded(name string, needed map[string]bool) (list []string, err error) {
	in, err := f.folder(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer in.Close()
	names, err := in.names()
	for _, n := range names {
		if !needed[n] {
			list = append(list, path.Join(name, n))
		}
	}
	return list, err
}

// EmptyFolders returns the empty folders directly below the folder top of the directory out, as paths below out.
func EmptyFolders(out, top string) ([]string, error) {
	return reading(out, func(root folder) (list []string, err error) {
		in, err := root.folder(top)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		defer in.Close()
		names, err := in.names()
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			below, err := in.folder(name)
			if err != nil {
				continue // a file, a link, or a folder of somebody else
			}
			inside, err := below.names()
			below.Close()
			if err == nil && len(inside) == 0 {
				list = append(list, path.Join(top, name))
			}
		}
		return list, nil
	})
}

// RemoveEmpty removes empty folders, and returns the removed ones. A folder that is no longer empty stays. Envoy must
// not watch the folders: it would never see an update of a folder that is made again.
func (d *Dir) RemoveEmpty(folders []string) (removed []string, err error) {
	if err := d.usable("remove folders of"); err != nil {
		return nil, err
	}
	for _, name := range folders {
		switch err := d.removeEmpty(name); {
		case err == nil:
			removed = append(removed, name)
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTEMPTY), errors.Is(err, syscall.EEXIST):
		default:
			return removed, err
		}
	}
	return removed, d.syncFolders(removed)
}

func (d *Dir) removeEmpty(name string) error {
	in, last, err := d.root.split(name)
	if err != nil {
		return err
	}
	defer in.Close()
	if info, err := in.lstat(last); err != nil || !info.Mode.IsDir() {
		return errors.Join(err, syscall.ENOTEMPTY) // not a folder of ours
	}
	return d.disk.Remove(in, last)
}
