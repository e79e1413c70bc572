package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"xdspub/tools/sample"
)

// edits is the number of measured edits of each kind.
const edits = 15

// kind is a kind of edit: of a file of the source tree, whose resource is in a published file. If adds is true,
// each edit adds a file, whose path has the number of the edit.
type kind struct {
	name, mode, file, published string
	adds                        bool
	resource                    func(t sample.Topology, i, change int) string
}

var kinds = []kind{
	{"an endpoint assignment, `--eds file`", "file", "endpoints/000007.yaml", "eds/service-00007/eds.pb", false, sample.Topology.Endpoints},
	{"a route configuration, `--eds file`", "file", "routes/000007.yaml", "rds/routes-0007/rds.pb", false, sample.Topology.RouteConfiguration},
	{"a cluster, `--eds file`", "file", "clusters/000007.yaml", "cds/cds.pb", false, sample.Topology.Cluster},
	{"a cluster and its endpoint assignment are added, " +
		"`--eds file`", "file", "clusters/added-%d.yaml", "cds/cds.pb", true, func(t sample.Topology, i, change int) string {
		return t.Cluster(t.Clusters+change, 0) + "---\n" + t.Endpoints(t.Clusters+change, 0)
	}},
	{"an endpoint assignment, `--eds inline`", "inline", "endpoints/000007.yaml", "cds/cds.pb", false, sample.Topology.Endpoints},
}

// measureEdits prints the time from the rename of a file in the source tree to the rename of the published file,
// and the processor time of the watch for an edit.
func measureEdits(dir, xdspub string, sizes []int) error {
	fmt.Printf("One file of the source tree renamed over, until the published file (pb) is: median of %d, and the mean processor time of the watch\n\n", edits)
	fmt.Print("| |")
	for _, n := range sizes {
		fmt.Printf(" %d clusters |", n)
	}
	fmt.Print(" the last to the one before |\n|---|" + strings.Repeat("---|", len(sizes)+1) + "\n")
	rows, walls := make([]string, len(kinds)), make([][]time.Duration, len(kinds))
	for _, n := range sizes {
		for i, k := range kinds {
			wall, cpu, err := measureEdit(filepath.Join(dir, fmt.Sprintf("edits-%d-%d", n, i)), xdspub, n, k)
			if err != nil {
				return fmt.Errorf("%s, %d clusters: %w", k.name, n, err)
			}
			rows[i] += fmt.Sprintf(" %.1f ms, %.0f ms CPU |", milliseconds(wall), milliseconds(cpu))
			walls[i] = append(walls[i], wall)
		}
	}
	for i, k := range kinds {
		last := len(walls[i]) - 1
		fmt.Printf("| %s |%s %.2f |\n", k.name, rows[i], float64(walls[i][last])/float64(walls[i][last-1]))
	}
	return nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// measureEdit starts a watch with more options, and edits its source tree.
func measureEdit(dir, xdspub string, n int, k kind, more ...string) (wall, cpu time.Duration, err error) {
	t := sample.Topology{Clusters: n, Routes: n / 10, Listeners: n / 100}
	source, out := filepath.Join(dir, "src"), filepath.Join(dir, "out")
	for name, text := range t.Files() {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(source, name)), 0o755); err != nil {
			return 0, 0, err
		}
		if err := os.WriteFile(filepath.Join(source, name), []byte(text), 0o644); err != nil {
			return 0, 0, err
		}
	}
	log := new(bytes.Buffer)
	cmd := exec.Command(xdspub, slices.Concat([]string{"watch", "--out", out, "--format", "pb", "--eds", k.mode, "--inotify-budget", "10000000",
		"--step-gap", "0s", "--rescan", "1h"}, more, []string{source})...)
	cmd.Stderr = io.Writer(log)
	if err := cmd.Start(); err != nil {
		return 0, 0, err
	}
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if werr := cmd.Wait(); err != nil || werr != nil {
			err = fmt.Errorf("%w\n%s", errors.Join(err, werr), log)
		}
	}()
	published := filepath.Join(out, filepath.FromSlash(k.published))
	if _, err := changed(filepath.Join(out, ".xdspub/control.sock"), nil); err != nil {
		return 0, 0, err
	}
	was, err := changed(published, nil)
	if err != nil {
		return 0, 0, err
	}
	time.Sleep(12 * time.Second) // by then, the watch holds signatures instead of the contents of files
	var walls []time.Duration
	began := processorTime(cmd.Process.Pid)
	for change := range edits {
		name := k.file
		if k.adds {
			name = fmt.Sprintf(name, change)
		}
		file := filepath.Join(source, filepath.FromSlash(name))
		if err := os.WriteFile(file+"~", []byte(k.resource(t, 7, change+1)), 0o644); err != nil {
			return 0, 0, err
		}
		start := time.Now()
		if err := os.Rename(file+"~", file); err != nil {
			return 0, 0, err
		}
		if was, err = changed(published, was); err != nil {
			return 0, 0, err
		}
		walls = append(walls, time.Since(start))
		time.Sleep(500 * time.Millisecond) // until the watch is idle
	}
	slices.Sort(walls)
	return walls[edits/2], (processorTime(cmd.Process.Pid) - began) / edits, nil
}

// changed waits until path names another file than was, and returns the file. A nil was means no file.
func changed(path string, was os.FileInfo) (os.FileInfo, error) {
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); time.Sleep(200 * time.Microsecond) {
		if is, err := os.Stat(path); err == nil && (was == nil || !os.SameFile(is, was)) {
			return is, nil
		}
	}
	return nil, fmt.Errorf("%s did not change", path)
}

// processorTime returns the processor time that a process has used so far; 0 if the process has ended.
func processorTime(pid int) time.Duration {
	var used unix.Timespec
	if unix.ClockGettime(int32(^pid<<3|2), &used) != nil { // the clock of clock_getcpuclockid(3)
		return 0
	}
	return time.Duration(used.Nano())
}
