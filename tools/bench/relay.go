package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// measureRelay prints what clients cost a server of go-control-plane, if they connect to the server, and if they
// connect to an xdspub serve that has the server as its source. The goals are a fiftieth of the processor time of the
// server, and 20 ms more for an edit.
func measureRelay(dir, xdspub string, sizes []int) error {
	for _, n := range sizes {
		fmt.Printf("%d clients on ADS (delta) ask for all of %d clusters, then one cluster is edited %d times: until they have it, best of "+
			"these, and the mean processor time\n\n", served, n, servedEdits)
		fmt.Print("| | all connected | CPU of the server | ratio | CPU of the relay | edit, p50 | p99 | more | CPU of the server an edit | ratio " +
			"| of the relay |\n|---|---|---|---|---|---|---|---|---|---|---|\n")
		var straight figures
		for i, r := range []struct{ name, relay string }{{"straight", ""}, {"behind `xdspub serve`", xdspub}} {
			f, err := measureRelayed(filepath.Join(dir, fmt.Sprintf("relay-%d-%d", n, i)), r.relay, n)
			if err != nil {
				return fmt.Errorf("%s: %w", r.name, err)
			}
			if r.relay == "" {
				straight = f
			}
			ratio := func(a, b time.Duration) float64 { return float64(a) / float64(b) }
			tenths := func(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }
			fmt.Printf("| %s | %v | %v | %.4f | %v | %v | %v | %v | %v | %.4f | %v |\n", r.name, f.connected.Round(time.Millisecond),
				f.firstCPU+f.connectCPU, ratio(f.firstCPU+f.connectCPU, straight.firstCPU+straight.connectCPU), f.relayCPU,
				tenths(f.p50), tenths(f.p99), tenths(f.p99-straight.p99), f.editCPU, ratio(f.editCPU, straight.editCPU), f.relayEditCPU)
		}
		fmt.Println()
	}
	return nil
}

// measureRelayed measures a server of go-control-plane, whose clients connect to the server or, if xdspub is not empty,
// to a relay.
func measureRelayed(dir, xdspub string, n int) (f figures, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return f, err
	}
	s := &contender{socket: filepath.Join(dir, "s"), n: n}
	if err := s.beginCache(dir, staticCache); err != nil {
		return f, err
	}
	if err := s.open(); err != nil {
		return f, err
	}
	defer s.end()
	if xdspub == "" {
		return s.measure(true)
	}
	server := s.socket
	s.socket = filepath.Join(dir, "relay")
	if s.relay, err = begin(xdspub, "serve", "--grpc", "unix:"+s.socket, forAll, "--node-id", "client", "xds+unix:"+server); err != nil {
		return f, err
	}
	defer s.relay.end()
	if _, err := changed(s.socket, nil); err != nil {
		return f, err
	}
	return s.measure(true)
}
