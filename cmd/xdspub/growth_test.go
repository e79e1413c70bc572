package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"xdspub/internal/sample"
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
	for late := time.After(30 * time.Second); ; {
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

func (h holdings) within(o holdings, heap uint64) bool {
	return h.goroutines <= o.goroutines && h.files <= o.files && h.heap <= o.heap+heap
}

func holds() holdings {
	runtime.GC()
	runtime.GC() // the second one frees what had a cleanup
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	open, _ := os.ReadDir("/proc/self/fd") // 0 where there is none
	return holdings{runtime.NumGoroutine(), len(open), m.HeapAlloc}
}

// TestNothingGrows takes a watch through 1,000 changes, every tenth of them a bad
// save first, and clusters that come and go in each. It then holds no goroutine,
// no descriptor and hardly a byte more than after the first 50, and when it ends
// nothing at all. A change is 7 kB of source: a pass that kept it, or what is made
// of it, would be seen.
func TestNothingGrows(t *testing.T) {
	const settled, changes, slack = 50, 1000, 2 << 20
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

	before := holds()
	ctx, cancel := context.WithCancel(t.Context())
	log, ended := make(logLines, 1000), make(chan error, 1)
	go func() {
		ended <- newApp(log, log).RunContext(ctx, []string{"xdspub", "watch", "--out", filepath.Join(dir, "out"),
			"--quiet-period", "1ms", "--step-gap", "0s", "--trim-delay", "0s", "--rescan", "100ms", src})
	}()
	log.until(t, "snapshot is out")
	var first holdings
	for n := range changes {
		good := sample.Part(n+1, 20)
		if n%10 == 0 {
			save(good + "- bogus")
			log.until(t, "refused")
		}
		save(good)
		log.until(t, "snapshot is out")
		if n == settled {
			first = holds()
		}
	}
	eventually := func(what string, slack uint64, most holdings) {
		t.Helper()
		for late := time.Now().Add(30 * time.Second); ; runtime.Gosched() {
			now := holds()
			if now.within(most, slack) {
				t.Logf("%s: %+v, at most %+v", what, now, most)
				return
			}
			if time.Now().After(late) {
				t.Fatalf("%s: %+v, want at most %+v", what, now, most)
			}
		}
	}
	eventually(fmt.Sprint("after ", changes, " changes"), slack, first)
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	eventually("after the end", slack, before)
}
