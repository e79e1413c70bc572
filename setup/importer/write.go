package importer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"xdspub/internal/crash"

	"golang.org/x/sync/errgroup"
)

// NotEmptyError means that the directory for an import exists and is not an empty directory.
type NotEmptyError struct{ Dir string }

func (e *NotEmptyError) Error() string {
	return fmt.Sprintf("%s is there, and is not an empty directory: import overwrites nothing, so choose another one", e.Dir)
}

// Write writes all files into a new or empty directory. If it returns an error, it has written none: a single
// rename puts the whole directory in place. mode is the mode of the files. Users who can read the
// files can also enter the folders.
func Write(dir string, files []File, mode fs.FileMode) error {
	dirMode, err := target(dir)
	if err != nil {
		return err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	if dirMode != 0 {
		if dir, err = filepath.EvalSymlinks(dir); err != nil {
			return err
		}
	}
	stage, err := os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+"-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(stage)
	whole := filepath.Join(stage, "import")
	if err := writeAll(whole, files, mode); err != nil {
		return err
	}
	if dirMode != 0 {
		if err := os.Chmod(whole, dirMode); err != nil {
			return err
		}
		if err := os.Remove(dir); err != nil {
			return err
		}
	}
	if err := os.Rename(whole, dir); err != nil {
		return err
	}
	return sync(filepath.Dir(dir))
}

// target returns the mode of an existing empty directory. It returns 0 if dir does not exist, and an error
// otherwise.
func target(dir string) (fs.FileMode, error) {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Lstat(dir); err == nil { // a link whose target does not exist
			return 0, &NotEmptyError{dir}
		}
		return 0, nil
	case err != nil:
		return 0, err
	case !info.IsDir():
		return 0, &NotEmptyError{dir}
	}
	f, err := os.Open(dir)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if names, _ := f.Readdirnames(1); len(names) > 0 {
		return 0, &NotEmptyError{dir}
	}
	return info.Mode().Perm(), nil
}

// together is the number of files that are written at the same time. A file system that flushes several files at
// once writes its journal once for all of them.
const together = 64

// writeAll writes files below a new directory, and flushes them to the disk.
func writeAll(dir string, files []File, mode fs.FileMode) error {
	folders := map[string]bool{dir: true, filepath.Join(dir, Tree): true}
	ofFolders := 0o700 | mode&0o444 | mode&0o444>>2                          // with x for each r of mode
	if err := os.MkdirAll(filepath.Join(dir, Tree), ofFolders); err != nil { // an import may have no resource
		return err
	}
	var g errgroup.Group
	g.SetLimit(together)
	for _, f := range files {
		name := filepath.Join(dir, filepath.FromSlash(f.Name))
		folder := filepath.Dir(name)
		if err := os.MkdirAll(folder, ofFolders); err != nil {
			return errors.Join(err, g.Wait())
		}
		folders[folder] = true
		g.Go(func() (err error) {
			defer crash.Catch(&err)
			return writeFile(name, f.Data, mode)
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for folder := range folders {
		g.Go(func() (err error) {
			defer crash.Catch(&err)
			return sync(folder)
		})
	}
	return g.Wait()
}

func writeFile(name string, data []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

// sync flushes the names in a folder to the disk.
func sync(folder string) error {
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
