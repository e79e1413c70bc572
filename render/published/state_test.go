package published_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"xdspub/event"
	"xdspub/render"
	"xdspub/render/published"
	"xdspub/tools/fixture"
	"xdspub/watch/pipeline"
	"xdspub/xds"
)

// TestFormats checks that a Reader knows the published files, and the damaged ones, in each format.
func TestFormats(t *testing.T) {
	for _, f := range render.Formats {
		t.Run(f.Name, func(t *testing.T) {
			s := fixture.New(t, func(o *pipeline.Options) { o.Format = f })
			named := func(text string) string { return strings.ReplaceAll(text, "json", f.Name) }
			s.Tree(fixture.Tree(fixture.Blue, fixture.Green, fixture.BlueEndpoints, fixture.GreenEndpoints, fmt.Sprintf(fixture.RoutesTo, "blue"), fmt.Sprintf(fixture.Listener, "a"), fixture.Layer))
			s.Publish()
			s.Want("nothing changed", "")
			s.Tree(fixture.Tree(fixture.Green, fixture.GreenEndpoints, fmt.Sprintf(fixture.RoutesTo, "green"), fmt.Sprintf(fixture.Listener, "a")))
			s.Want("blue and the layer are dropped", named(`
secrets, extensions, runtime: rtds/flags/rtds.json
routes: rds/main/rds.json`))
			if diff := cmp.Diff([]string{"blue", "green"}, s.Clusters()); diff != "" {
				t.Errorf("clusters (-want +got):\n%s", diff)
			}
			layers, err := published.RuntimeLayers(s.Options.Out, f)
			if err != nil || len(layers) != 1 || layers[0] != "flags" {
				t.Errorf("layers %v, %v", layers, err)
			}
			cds := filepath.Join(s.Options.Out, f.Path(xds.Cluster, ""))
			whole, err := os.ReadFile(cds)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(cds, whole[:len(whole)/2], 0o644); err != nil {
				t.Fatal(err)
			}
			s.Want("a file that lost its end is mended", named("clusters: cds/cds.json"))
			s.Now = s.Now.Add(time.Hour)
			s.Want("all of blue goes that is left", named("trim files: -eds/blue/eds.json"))
		})
	}
}

// TestLive checks which options a published output directory allows: only those that a running Envoy can
// follow.
func TestLive(t *testing.T) {
	s := fixture.New(t, nil)
	s.Tree(fixture.Tree(fixture.Blue, fixture.BlueEndpoints))
	s.Publish()
	s.Restart(func(o *pipeline.Options) { o.EnvoyPath = "/elsewhere" })
	checked, err := s.Checked.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var usage *published.UsageError
	if _, _, err := s.P.Plan(s.T.Context(), checked.Snapshot, s.Now); !errors.As(err, &usage) || !strings.Contains(err.Error(), "--envoy-path=/xds") {
		t.Errorf("another --envoy-path: %v", err)
	}
	s.Restart(func(o *pipeline.Options) { o.EnvoyPath, o.Format = "/xds", render.Binary })
	if _, _, err := s.P.Plan(s.T.Context(), checked.Snapshot, s.Now); !errors.As(err, &usage) || !strings.Contains(err.Error(), "--format=json") {
		t.Errorf("another --format: %v", err)
	}

	s.Restart(func(o *pipeline.Options) { o.Format = render.JSON })
	if err := os.WriteFile(filepath.Join(s.Options.Out, "cds/cds.json"), []byte(`{"resources": [`), 0o644); err != nil {
		t.Fatal(err)
	}
	s.Want("a published file that was damaged by hand is mended", "clusters: cds/cds.json")
}

// TestDamageIsLoggedOnce checks that a folder in the place of a published file, which no publish replaces, is
// logged once.
func TestDamageIsLoggedOnce(t *testing.T) {
	out := t.TempDir()
	var log bytes.Buffer
	r := published.New(published.Options{Dir: out, Log: event.New(slog.NewTextHandler(&log, nil))})
	file := filepath.Join(out, "cds/cds.json")
	for want := 1; want <= 2; want++ {
		if err := os.MkdirAll(file, 0o755); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if _, err := r.State(); err != nil {
				t.Fatal(err)
			}
			if got := strings.Count(log.String(), "event=published-file-unreadable"); got != want {
				t.Fatalf("%d lines, want %d:\n%s", got, want, &log)
			}
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		if _, err := r.State(); err != nil {
			t.Fatal(err)
		}
	}
}
