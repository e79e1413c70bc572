// Mount puts the files of a directory into a volume, and later each change of the files, in the way the
// kubelet mounts a ConfigMap:
//
//	go run ./examples/kubernetes/mount DIRECTORY VOLUME
//
//	VOLUME/..2026_11_21_15_04_05.123/  the files
//	VOLUME/..data                      a link to the folder
//	VOLUME/routes.yaml                 a link to ..data/routes.yaml, one for each file
//
// All files change at once, when another link is renamed over ..data. Only then Mount adds the links of new
// files and removes the links of removed files. For a moment, some links are missing and some lead nowhere.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	if len(os.Args) != 3 || strings.HasPrefix(os.Args[1], "-") {
		fmt.Fprintln(os.Stderr, "usage: go run ./examples/kubernetes/mount DIRECTORY VOLUME")
		os.Exit(2)
	}
	if err := mount(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "mount:", err)
		os.Exit(1)
	}
}

func mount(from, volume string) error {
	if err := os.MkdirAll(volume, 0o755); err != nil {
		return err
	}
	data := filepath.Join(volume, "..data")
	old, err := os.Readlink(data)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	dir, err := os.MkdirTemp(volume, time.Now().UTC().Format("..2006_01_02_15_04_05."))
	if err != nil {
		return err
	}
	// MkdirTemp made it for its owner only, and xdspub runs as another user.
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		return err
	}
	next := filepath.Join(volume, "..data_tmp")
	if err := os.Symlink(filepath.Base(dir), next); err != nil {
		return err
	}
	if err := os.Rename(next, data); err != nil {
		return err
	}
	if err := link(dir, volume); err != nil {
		return err
	}
	if old == "" {
		return nil
	}
	return os.RemoveAll(filepath.Join(volume, old))
}

// link makes the links of a volume those that lead to something in dir.
func link(dir, volume string) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	wanted := make(map[string]bool)
	for _, f := range files {
		wanted[f.Name()] = true
		err := os.Symlink(filepath.Join("..data", f.Name()), filepath.Join(volume, f.Name()))
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	links, err := os.ReadDir(volume)
	if err != nil {
		return err
	}
	for _, l := range links {
		if wanted[l.Name()] || strings.HasPrefix(l.Name(), "..") {
			continue
		}
		if err := os.Remove(filepath.Join(volume, l.Name())); err != nil {
			return err
		}
	}
	return nil
}
