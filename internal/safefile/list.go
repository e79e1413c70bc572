package safefile

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
)

// List returns the entries of a folder for which keep returns true, sorted by name. It reads the folder in parts,
// so a huge folder does not fill the memory. It calls count with the number of names in each part.
//
// List returns an error of count at once. It also returns an error if ctx ends.
func List(ctx context.Context, dir string, count func(names int) error, keep func(fs.DirEntry) bool) ([]fs.DirEntry, error) {
	d, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	var kept []fs.DirEntry
	for {
		entries, err := d.ReadDir(1024)
		if err := count(len(entries)); err != nil {
			return nil, err
		}
		for _, e := range entries {
			if keep(e) {
				kept = append(kept, e)
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			slices.SortFunc(kept, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
			return kept, nil
		case err != nil:
			return nil, err
		case ctx.Err() != nil:
			return nil, ctx.Err()
		}
	}
}
