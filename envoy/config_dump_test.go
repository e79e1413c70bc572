package envoy_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestConfigDump: a dump has all resources, with endpoints, and is bounded.
func TestConfigDump(t *testing.T) {
	f := newFixture(t)
	_, a := newEverything(f).start(nil)
	data, err := a.ConfigDump(t.Context())
	var all struct {
		Configs []struct {
			Type string `json:"@type"`
		}
	}
	if err != nil || json.Unmarshal(data, &all) != nil {
		t.Fatalf("%v: %.300s", err, data)
	}
	for _, want := range []string{"BootstrapConfigDump", "ClustersConfigDump", "EndpointsConfigDump", "ListenersConfigDump"} {
		if !strings.Contains(string(data), "type.googleapis.com/envoy.admin.v3."+want) {
			t.Errorf("there is no %s among %v", want, all)
		}
	}
	if testing.Short() {
		return
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		block := strings.Repeat(" ", 1<<20)
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, block); err != nil {
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	if _, err := admin(t, server.URL).ConfigDump(t.Context()); !isNotEnvoy(err, "/config_dump returned more than 128 MiB") {
		t.Errorf("%T %v", err, err)
	}
}

// TestConfigDumpEnds: the context ends the wait for a dump.
func TestConfigDumpEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "{")
		_ = http.NewResponseController(w).Flush()
		cancel()
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	if _, err := admin(t, server.URL).ConfigDump(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%T %v", err, err)
	}
}
