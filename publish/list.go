package publish

import (
	"errors"
	"io/fs"
	"os"
	"strings"
)

// List returns the published files of the directory out, slash-separated, below
// it and sorted. A directory that does not exist holds none.
func List(out string) ([]string, error) {
	var files []string
	err := fs.WalkDir(os.DirFS(out), ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == private:
			return fs.SkipDir
		case !e.IsDir() && strings.Contains(name, "/"):
			files = append(files, name)
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return files, err
}
