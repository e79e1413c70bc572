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

// logLines takes each line of a log.
type logLines chan string

func (l logLines) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}

// until waits for a line with that text in it.
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

// holdings is what a process holds for as long as it wants.
type holdings struct {
	goroutines, files int
	heap              uint64
}

func (h holdings) within(most holdings) bool {
	return h.goroutines <= most.goroutines && h.files <= most.files && h.heap <= most.heap
}

func holds() holdings {
	runtime.GC()
	runtime.GC() // the second one frees what had a cleanup
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	open, _ := os.ReadDir("/proc/self/fd") // 0 where there is none
	return holdings{goroutines(), len(open), m.HeapAlloc}
}

// goroutines counts those that run the program's own code: the runtime starts and
// ends some of its own at any time.
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

// TestNothingGrows takes a watch through 1,000 changes; with every tenth come a bad
// save, another cluster, and one that goes. The watch then holds no goroutine, no
// descriptor and hardly a byte more than after the first 50, and when it has ended
// no goroutine and no descriptor at all. A change is 7 kB of source: if passes kept
// that, or what is made of it, it would be three times the slack.
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
	signal.Notify(hup, syscall.SIGHUP) // from its first use on, package signal keeps a goroutine
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
	before.heap = math.MaxUint64 // what the program makes once, it keeps
	eventually(t, "after the end", before)
}

// eventually waits until no more is held: a goroutine that has said goodbye may
// not be off the count yet, and a rescan may have a descriptor for a moment.
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
