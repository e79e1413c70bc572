package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"xdspub/tools/sample"
)

// historyRounds is the number of rounds of edits, with and without a history in turn. historyEdits is the number of
// edits of a tree whose history is measured.
const historyRounds, historyEdits = 3, 50

// measureHistory prints the cost of the history: of an edit with and without it, and of its bytes.
func measureHistory(dir, xdspub string, n int) error {
	fmt.Printf("The history of a watch of %d clusters: median of %d rounds of %d edits\n\n"+
		"| edit | --history 0 | with | ratio | CPU --history 0 | CPU with | ratio |\n|---|---|---|---|---|---|---|\n", n, historyRounds, edits)
	for i, k := range []kind{kinds[0], kinds[2]} {
		var walls, cpus [2][]time.Duration
		for round := range historyRounds {
			for with, keep := range []string{"0", "50"} {
				place := filepath.Join(dir, fmt.Sprintf("history-%d-%d-%d", i, round, with))
				wall, cpu, err := measureEdit(place, xdspub, n, k, "--history", keep)
				if err != nil {
					return err
				}
				walls[with], cpus[with] = append(walls[with], wall), append(cpus[with], cpu)
				os.RemoveAll(place)
			}
		}
		wall, cpu := [2]time.Duration{middle(walls[0]), middle(walls[1])}, [2]time.Duration{middle(cpus[0]), middle(cpus[1])}
		fmt.Printf("| %s | %.1f ms | %.1f ms | %.2f | %.1f ms | %.1f ms | %.2f |\n", k.name, milliseconds(wall[0]), milliseconds(wall[1]),
			float64(wall[1])/float64(wall[0]), milliseconds(cpu[0]), milliseconds(cpu[1]), float64(cpu[1])/float64(cpu[0]))
	}
	return measureHistorySize(filepath.Join(dir, "history-size"), xdspub, n)
}

// measureHistorySize prints the bytes of the history after edits of one cluster, beside the bytes of the source tree.
func measureHistorySize(dir, xdspub string, n int) error {
	t := sample.Topology{Clusters: n, Routes: n / 10, Listeners: n / 100}
	w := setup{dir: dir, xdspub: xdspub}
	if err := w.write("src", t.Files()); err != nil {
		return err
	}
	source, out := filepath.Join(dir, "src"), filepath.Join(dir, "out")
	k := kinds[2]
	for change := range historyEdits {
		if err := os.WriteFile(filepath.Join(source, filepath.FromSlash(k.file)), []byte(k.resource(t, 7, change+1)), 0o644); err != nil {
			return err
		}
		said, err := exec.Command(xdspub, "render", "--quiet", "--out", out, "--format", "pb", "--inotify-budget", "10000000", "--step-gap", "0s",
			source).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w\n%s", err, said)
		}
	}
	tree, _, err := bytesBelow(source)
	if err != nil {
		return err
	}
	size, taken, err := bytesBelow(filepath.Join(out, ".xdspub", "history"))
	if err != nil {
		return err
	}
	fmt.Printf("\n%d edits of a cluster: the history has %d KB, %d KB on disk; the source tree has %d KB: ratio %.2f\n\n", historyEdits, size/1000, taken/1000, tree/1000,
		float64(taken)/float64(tree))
	return nil
}

// bytesBelow returns the bytes of all files below a directory, and the bytes that they take on the disk.
func bytesBelow(dir string) (size, taken int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			size += info.Size()
			taken += 512 * info.Sys().(*syscall.Stat_t).Blocks
		}
		return err
	})
	return size, taken, err
}
