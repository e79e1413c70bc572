package event_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"xdspub/diag"
	"xdspub/event"
)

// A Log writes an event as a line with a stable name and stable keys.
func Example() {
	noTime := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	log := event.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: noTime}))
	log.Write(event.StepPublished{Step: "clusters", Written: 2})
	// Output:
	// level=INFO msg="published a step" event=step-published step=clusters written=2 removed=0
}

func TestWrite(t *testing.T) {
	finding := event.FindingOf(diag.Diagnostic{Code: "unknown-field", Severity: diag.Warning, Message: "unknown field", Position: diag.Position{File: "a.yaml", Line: 2, Column: 1}})
	added := 0
	for _, tt := range []struct {
		event event.Event
		want  string
	}{
		{event.WatchPartial{Error: errors.New("no"), Rescan: 90 * time.Second}, `"level":"WARN","msg":"the watch gets no events of some folders; the next rescan tries again","event":"watch-partial","error":"no","rescan":"1m30s"}`},
		{event.Watching{Source: "src", Out: "out", PID: 3}, `"event":"watching","source":"src","out":"out","pid":3}`},
		{event.FileNotApplied{Envoy: "e", File: "f", State: "STALE", ExpectedVersion: "2", WithinChange: true}, `"level":"WARN","msg":"Envoy does not run a published file","event":"file-not-applied","envoy":"e","file":"f","state":"STALE","expected_version":"2","running_version":""}`},
		{event.FileNotApplied{Error: "busy"}, `"level":"ERROR"`},
		{finding, `"level":"WARN","msg":"unknown field","event":"finding","code":"unknown-field","place":"a.yaml:2:1"}`},
		{event.Published{ResourcesAdded: &added}, `"resources":0,"resources_added":0,"reason":""}`},
	} {
		var b bytes.Buffer
		event.New(slog.NewJSONHandler(&b, nil)).Write(tt.event)
		if got := b.String(); !strings.Contains(got, tt.want) {
			t.Errorf("%s\nhas no %s", got, tt.want)
		}
	}
	var b bytes.Buffer
	event.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelWarn})).Write(event.SourceValid{})
	(*event.Log)(nil).Write(event.SourceValid{})
	if b.Len() > 0 {
		t.Errorf("%q", &b)
	}
}
