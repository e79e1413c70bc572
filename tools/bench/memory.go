package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"xdspub/tools/sample"
)

// memoryEdits is the number of edits between the two measurements of a watch's memory.
const memoryEdits = 60

// measureMemory prints the memory of a watch of a tree for each size. Each tree has 21,100 files; with 100,000
// clusters, a file has ten resources.
func measureMemory(dir, xdspub string, sizes []int) error {
	fmt.Printf("\nResident memory of a watch (`--eds file --format pb`)\n\n| | once it has published | after %d edits of endpoint "+
		"assignments | at most |\n|---|---|---|---|\n", memoryEdits)
	for _, n := range sizes {
		if err := memoryOf(filepath.Join(dir, fmt.Sprintf("memory-%d", n)), xdspub, n); err != nil {
			return err
		}
	}
	return nil
}

func memoryOf(dir, xdspub string, n int) error {
	t := sample.Topology{Clusters: n, Routes: n / 10, Listeners: n / 100}
	s := &site{dir: dir, source: filepath.Join(dir, "src"), out: filepath.Join(dir, "out")}
	each := max(1, n/clusters)
	files := inFilesOf(each, t.Files())
	for name, text := range files {
		if err := put(filepath.Join(s.source, name), text); err != nil {
			return err
		}
	}
	w, err := s.watch(xdspub, "--inotify-budget", "10000000")
	if err != nil {
		return err
	}
	defer w.end()
	time.Sleep(15 * time.Second) // by then, the watch has returned memory to the system, and holds signatures instead of the contents of files
	fmt.Printf("| %d clusters in %d files | %.0f MiB |", n, len(files), memory(w.Process.Pid, "VmRSS"))
	record := filepath.Join(s.out, ".xdspub/manifest.json")
	was, err := changed(record, nil)
	if err != nil {
		return err
	}
	const edited = "endpoints/000000.yaml"
	for change := range memoryEdits {
		text := strings.Replace(files[edited], t.Endpoints(0, 0), t.Endpoints(0, change+1), 1)
		if err := put(filepath.Join(s.source, edited), text); err != nil {
			return err
		}
		if was, err = changed(record, was); err != nil {
			return err
		}
	}
	fmt.Printf(" %.0f MiB | %.0f MiB |\n", memory(w.Process.Pid, "VmRSS"), memory(w.Process.Pid, "VmHWM"))
	return nil
}

// inFilesOf joins the files of each folder, in the order of their names, to files of n resources.
func inFilesOf(n int, files map[string]string) map[string]string {
	joined, folder, of := make(map[string]string), "", 0
	var name string
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if in := filepath.Dir(file); in != folder || of == n {
			folder, of, name = in, 0, file
		} else {
			joined[name] += "---\n"
		}
		joined[name] += files[file]
		of++
	}
	return joined
}
