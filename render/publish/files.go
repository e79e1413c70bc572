package publish

import (
	"errors"
	"io/fs"
	"path"
	"time"
)

// ReadFile reads a file of the directory out, by its path below it.
func ReadFile(out, file string) ([]byte, error) {
	return reading(out, func(root folder) ([]byte, error) {
		data, _, err := root.read(file, MaxFile)
		return data, err
	})
}

// Changed returns when a file of the directory out, or the folder that it is in, was last changed,
// by the clock of its file system: now where one of them is gone, or can't be asked.
func Changed(out, file string) (last time.Time) {
	root, err := openOut(out)
	if err != nil {
		return time.Now()
	}
	defer root.Close()
	for _, name := range []string{file, path.Dir(file)} {
		info, err := root.lstat(name)
		if err != nil {
			return time.Now()
		}
		if at := info.Changed(); at.After(last) {
			last = at
		}
	}
	return last
}

// Unreadable reports whether an error of ReadFile says that something else stands where
// the file should: a link, a pipe, a folder, or a file over MaxFile.
func Unreadable(err error) bool { return isOther(err) }

// Files returns, by path, the files with a base name in the folder top of the directory out, and in the
// folders directly below. A file may be a link or a pipe. Files does not enter a folder that is a link; a link
// at top is an error.
func Files(out, top, base string) (map[string]Info, error) {
	return reading(out, func(root folder) (map[string]Info, error) {
		found := make(map[string]Info)
		in, err := root.folder(top)
		if errors.Is(err, fs.ErrNotExist) {
			return found, nil
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
			file := name
			if name != base {
				file = path.Join(name, base)
			}
			info, err := in.stat(file)
			switch {
			case errors.Is(err, fs.ErrNotExist), isOther(err):
			case err != nil:
				return nil, err
			case !info.Mode.IsDir():
				found[path.Join(top, file)] = info
			}
		}
		return found, nil
	})
}
