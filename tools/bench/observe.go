package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"xdspub/tools/sample"
	"xdspub/tools/unixhttp"
)

const (
	// observedRounds is the number of rounds of edits, with and without --http in turn.
	observedRounds = 3
	// scrapeEach is the interval of scrapes of Prometheus, and observedFor the time of an idle measurement.
	scrapeEach, observedFor = 15 * time.Second, 2 * time.Minute
)

// measureObserve prints the cost of metrics, events and the page: of an edit with and without --http, of an idle watch
// with a scrape each 15 s, and of scrapes of a serve with 1,000 clients.
func measureObserve(dir, xdspub string, n int) error {
	fmt.Printf("--http of a watch of %d clusters, with a reader of events and a scrape each 15 s: median of %d rounds of %d edits\n\n"+
		"| edit | without | with | ratio | CPU without | CPU with | ratio |\n|---|---|---|---|---|---|---|\n", n, observedRounds, edits)
	for i, k := range []kind{kinds[0], kinds[2]} {
		var walls, cpus [2][]time.Duration
		for round := range observedRounds {
			for with := range 2 {
				place := filepath.Join(dir, fmt.Sprintf("observe-%d-%d-%d", i, round, with))
				wall, cpu, err := observedEdit(place, xdspub, n, k, with == 1)
				if err != nil {
					return err
				}
				walls[with], cpus[with] = append(walls[with], wall), append(cpus[with], cpu)
				os.RemoveAll(place)
			}
		}
		wall, cpu := [2]time.Duration{middle(walls[0]), middle(walls[1])}, [2]time.Duration{middle(cpus[0]), middle(cpus[1])}
		fmt.Printf("| %s | %.1f ms | %.1f ms | %.2f | %.0f ms | %.0f ms | %.2f |\n", k.name, milliseconds(wall[0]), milliseconds(wall[1]),
			float64(wall[1])/float64(wall[0]), milliseconds(cpu[0]), milliseconds(cpu[1]), float64(cpu[1])/float64(cpu[0]))
	}
	return measureScrapes(dir, xdspub, n)
}

// middle returns the median of a list.
func middle(list []time.Duration) time.Duration {
	slices.Sort(list)
	return list[len(list)/2]
}

func observedEdit(dir, xdspub string, n int, k kind, with bool) (wall, cpu time.Duration, err error) {
	if !with {
		return measureEdit(dir, xdspub, n, k)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, 0, err
	}
	socket := filepath.Join(dir, "h.sock")
	ctx, cancel := context.WithCancel(context.Background())
	var readers sync.WaitGroup
	defer readers.Wait()
	defer cancel()
	readers.Go(func() { each(ctx, scrapeEach, func() { _, _ = fetch(ctx, socket, "/metrics") }) })
	readers.Go(func() { each(ctx, time.Second, func() { _, _ = fetch(ctx, socket, "/api/v1/events?since=now") }) })
	return measureEdit(dir, xdspub, n, k, "--http", "unix:"+socket)
}

// measureScrapes prints the processor time of a serve with clients that is scraped each 15 s, and of one request.
func measureScrapes(dir, xdspub string, n int) error {
	place := filepath.Join(dir, "observe-serve")
	socket := filepath.Join(place, "h.sock")
	s, err := newContender(place, xdspub, "xdspub serve", sample.Topology{Clusters: n, Routes: n / 10, Listeners: n / 100}, "--http", "unix:"+socket, "--max-client-memory", "1GiB")
	if err != nil {
		return err
	}
	defer s.end()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	told, failed := make(chan time.Time, served), make(chan error, served)
	for range served {
		go func() { failed <- s.follow(ctx, true, told) }()
	}
	if err := await(ctx, told, served, failed); err != nil {
		return err
	}
	s.comeToRest()
	fmt.Printf("\nserve of %d clusters with %d clients, idle\n\n| | CPU |\n|---|---|\n", n, served)
	idle := func(scrape bool) (float64, error) {
		used, ends := s.cpu(), time.Now().Add(observedFor)
		for time.Now().Before(ends) {
			if scrape {
				if _, err := fetch(ctx, socket, "/metrics"); err != nil {
					return 0, err
				}
			}
			time.Sleep(scrapeEach)
		}
		return 100 * (s.cpu() - used).Seconds() / observedFor.Seconds(), nil
	}
	for _, of := range []struct {
		name   string
		scrape bool
	}{{"no scrape", false}, {"a scrape each 15 s", true}} {
		share, err := idle(of.scrape)
		if err != nil {
			return err
		}
		fmt.Printf("| %s, over %v | %.2f %% of a core |\n", of.name, observedFor, share)
	}
	const requests = 50
	for _, path := range []string{"/metrics", "/readyz", "/api/v1/status", "/"} {
		used, size := s.cpu(), 0
		for range requests {
			if size, err = fetch(ctx, socket, path); err != nil {
				return err
			}
		}
		fmt.Printf("| `%s`, %d KB | %.1f ms |\n", path, size/1000, milliseconds(s.cpu()-used)/requests)
	}
	fmt.Println()
	return nil
}

// each calls f at an interval, until ctx ends.
func each(ctx context.Context, interval time.Duration, f func()) {
	for ctx.Err() == nil {
		f()
		select {
		case <-time.After(interval):
		case <-ctx.Done():
		}
	}
}

// fetch reads the answer to a request through a Unix socket, and returns its size.
func fetch(ctx context.Context, socket, path string) (size int, err error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+path, nil)
	if err != nil {
		return 0, err
	}
	r, err := unixhttp.Client(socket).Do(q)
	if err != nil {
		return 0, err
	}
	defer r.Body.Close()
	n, err := io.Copy(io.Discard, r.Body)
	if err == nil && r.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", path, r.Status)
	}
	return int(n), err
}
