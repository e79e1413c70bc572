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

// List returns what the folder dir holds and keep takes, sorted by name. It can hold millions
// of names: not all of them are kept at a time. count is told how many were met; its error
// ends the list, as the end of ctx does.
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
