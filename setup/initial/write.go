package initial

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"xdspub/diag"
)

// ExistsError lists files that already exist at the places of new files.
type ExistsError struct {
	Paths []string // each begins with the directory
}

func (e *ExistsError) Error() string {
	return fmt.Sprintf("nothing was written, since there is already: %s", diag.Few(e.Paths, 3))
}

// Write writes all files into dir or, after an error, none. Write creates dir, but not the parent of dir. It
// replaces nothing: an existing file or link is an ExistsError. It does not follow a link that leads out of dir.
func Write(dir string, files []File) error {
	err := os.Mkdir(dir, 0o777)
	isNew := err == nil
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	err = writeIn(dir, files)
	if err != nil && isNew {
		err = errors.Join(err, os.Remove(dir))
	}
	return err
}

func writeIn(dir string, files []File) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	var taken []string
	for _, f := range files {
		_, err := root.Lstat(f.Path)
		if err == nil {
			taken = append(taken, filepath.Join(dir, f.Path))
		} else if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: %w", dir, err)
		}
	}
	if len(taken) > 0 {
		return &ExistsError{Paths: taken}
	}
	w := writer{root: root}
	for _, f := range files {
		if err := w.write(f); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", dir, err), w.undo())
		}
	}
	return nil
}

// writer creates files and folders, and remembers them.
type writer struct {
	root *os.Root
	made []string // the created paths, in the order of creation
}

func (w *writer) write(f File) error {
	if err := w.folder(path.Dir(f.Path)); err != nil {
		return err
	}
	file, err := w.root.OpenFile(f.Path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	w.made = append(w.made, f.Path)
	_, err = file.Write(f.Data)
	return errors.Join(err, file.Close())
}

// folder creates a folder and its parents, if they do not exist.
func (w *writer) folder(name string) error {
	if name == "." {
		return nil
	}
	if err := w.folder(path.Dir(name)); err != nil {
		return err
	}
	err := w.root.Mkdir(name, 0o777)
	switch {
	case err == nil:
		w.made = append(w.made, name)
	case errors.Is(err, fs.ErrExist):
		return nil
	}
	return err
}

// undo removes the files and folders that w has created.
func (w *writer) undo() (err error) {
	for _, name := range slices.Backward(w.made) {
		err = errors.Join(err, w.root.Remove(name))
	}
	return err
}
