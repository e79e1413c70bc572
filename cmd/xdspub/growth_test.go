package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"xdspub/tools/memdir"
	"xdspub/tools/sample"
)

// logLines is an io.Writer that sends each line of a log.
type logLines chan string

func (l logLines) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}

// until waits for a line with the text.
func (l logLines) until(t *testing.T, text string) {
	t.Helper()
	for late := time.After(2 * time.Minute); ; {
		select {
		case line := <-l:
			if strings.Contains(line, text) {
				return
			}
		case <-late:
			t.Fatalf("%q is not logged", text)
		}
	}
}

// holdings are the resources of a process that a leak would increase.
type holdings struct {
	goroutines, files int
	heap              uint64
}

func (h holdings) within(most holdings) bool {
	return h.goroutines <= most.goroutines && h.files <= most.files && h.heap <= most.heap
}

func holds() holdings {
	runtime.GC()
	runtime.GC() // the second collection frees objects with cleanups
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	open, _ := os.ReadDir("/proc/self/fd") // 0 on other systems
	return holdings{goroutines(), len(open), m.HeapAlloc}
}

// goroutines counts the goroutines that run code of the program. The runtime starts and ends goroutines of its
// own at any time.
func goroutines() int {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	n := 0
	for _, stack := range strings.Split(string(stacks), "\n\n") {
		if strings.Contains(stack, "xdspub/") {
			n++
		}
	}
	return n
}

// TestNothingGrows makes 1,000 changes under a watch. Every tenth change comes with an invalid save, a new
// cluster and a removed cluster. The watch then has no more goroutines, no more descriptors and hardly more
// memory than after the first 50 changes. After its end, the watch has none of its goroutines and descriptors.
// A change is 7 kB of source: if passes kept that, the memory would grow by three times the slack.
func TestNothingGrows(t *testing.T) {
	const settled, slack = 50, 2 << 20
	changes := 1000
	if testing.Short() {
		changes = 100
	}
	dir := t.TempDir()
	src := filepath.Join(dir, "src")
	save := func(text string) {
		t.Helper()
		staged := filepath.Join(dir, "staged")
		if err := os.WriteFile(staged, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(staged, filepath.Join(src, "a.yaml")); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(src, 0o755); err != nil {
		t.Fatal(err)
	}
	save(sample.Part(0, 20))

	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP) // package signal keeps a goroutine after its first use
	signal.Stop(hup)
	before := holds()
	ctx, cancel := context.WithCancel(t.Context())
	log, ended := make(logLines, 1000), make(chan error, 1)
	go func() {
		ended <- runCommand(ctx, newApp(log, log), []string{"xdspub", "watch", "--out", filepath.Join(memdir.New(t), "out"),
			"--quiet-period", "1ms", "--step-gap", "0s", "--trim-delay", "0s", "--rescan", "100ms", src})
	}()
	log.until(t, "event=published ")
	var first holdings
	for n := range changes {
		good := strings.ReplaceAll(sample.Part(n/10, 20), "connect_timeout: 1s", fmt.Sprintf("connect_timeout: %ds", n+2))
		if n%10 == 0 {
			save(good + "- bogus")
			log.until(t, "event=source-invalid ")
		}
		save(good)
		log.until(t, "event=published ")
		if n == settled {
			first = holds()
		}
	}
	first.heap += slack
	eventually(t, fmt.Sprintf("after %d changes", changes), first)
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	before.heap = math.MaxUint64 // the program keeps what it creates once
	eventually(t, "after the end", before)
}

// eventually waits until the process holds no more than most. A goroutine that is at its end may still count,
// and a rescan may have a descriptor for a moment.
func eventually(t *testing.T, when string, most holdings) {
	t.Helper()
	for late := time.Now().Add(2 * time.Minute); ; runtime.Gosched() {
		now := holds()
		if now.within(most) {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("%s: %+v, want at most %+v", when, now, most)
		}
	}
}
