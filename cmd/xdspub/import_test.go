package main

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestImportRoundTrip serves source trees, imports each server, and compares the new tree with what the server sends.
// The new tree with its bootstrap has no findings.
func TestImportRoundTrip(t *testing.T) {
	own := []string{"--descriptor-set", "../../examples/own-types/config/types.binpb"}
	for _, tree := range []struct {
		name string
		args []string // of import, diff and validate
	}{
		{"ads/config", nil}, {"multi", nil}, {"own-types/config", own}, {"quickstart", nil},
	} {
		t.Run(tree.name, func(t *testing.T) {
			t.Parallel()
			src, dir := filepath.Join("../../examples", tree.name), t.TempDir()
			socket := serveTree(t, src, dir)
			edge, node := filepath.Join(dir, "edge"), filepath.Join(dir, "envoy.yaml")
			must(t, "bootstrap", "envoy", "--transport", "delta-ads", "--server", "unix:"+socket, "--node-id", "edge-1", "--node-cluster", "edge", "--output", node, src)
			of := append(tree.args, "--node-from", node)
			must(t, append(append([]string{"import"}, of...), "xds+unix:"+socket, edge)...)
			must(t, append(append([]string{"validate", "--warnings-as-errors", "--bootstrap", filepath.Join(edge, "bootstrap.yaml")}, tree.args...), filepath.Join(edge, "config"))...)
			text := must(t, append(append([]string{"diff"}, of...), "xds+unix:"+socket, filepath.Join(edge, "config"))...)
			if strings.Contains(text, "not compared") {
				t.Error(text)
			}
			if tree.name != "multi" { // serve adds aliases to virtual hosts
				must(t, append(append([]string{"diff"}, tree.args...), src, filepath.Join(edge, "config"))...)
			}
		})
	}
}

// serveTree serves a source tree until the test ends, and returns the path of the socket, which is in dir.
func serveTree(t *testing.T, src, dir string) (socket string) {
	t.Helper()
	socket = filepath.Join(dir, "xds.sock")
	log := new(outLog)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- runCommand(ctx, newApp(io.Discard, log), []string{"xdspub", "serve", "--quiet-period", "1ms", "--grpc", "unix:" + socket, src})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	for !strings.Contains(log.String(), "event=published ") {
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("%v: %s", err, log)
		case <-time.After(5 * time.Millisecond):
		}
	}
	return socket
}

// must runs a command that must end with exit status 0, and returns what it prints.
func must(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	if status := run(append([]string{"xdspub"}, args...), &out, &out); status != exitOK {
		t.Fatalf("%s: exit status %d: %s", strings.Join(args, " "), status, &out)
	}
	return out.String()
}
