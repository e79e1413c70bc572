package trim_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"xdspub/render/publish"
	"xdspub/render/trim"
	"xdspub/tools/fixture"
	"xdspub/watch/pipeline"
)

// TestBackThenInterrupted retires a file or a cluster again that came back in an interrupted publish. The trim
// delay begins again.
func TestBackThenInterrupted(t *testing.T) {
	routes := fmt.Sprintf(fixture.RoutesTo, "green")
	static := strings.Replace(fixture.Blue, "EDS", "STATIC", 1)
	t.Run("a file", func(t *testing.T) {
		s := fixture.New(t, nil)
		with := fixture.Tree(fixture.Blue, fixture.BlueEndpoints, fixture.Green, fixture.GreenEndpoints, routes)
		s.Tree(with)
		s.Publish()
		s.Tree(fixture.Tree(static, fixture.Green, fixture.GreenEndpoints, routes))
		s.Want("blue has no endpoints by file", "clusters: cds/cds.json")
		s.Now = s.Now.Add(9 * time.Minute)
		s.Tree(strings.Replace(with, "cluster: green", "cluster: blue", 1))
		s.Stop(1)
		s.Now = s.Now.Add(30 * time.Second)
		s.Tree(fixture.Tree(fixture.Green, fixture.GreenEndpoints, routes))
		s.Want("blue goes", "")
		s.Now = s.Now.Add(time.Minute)
		s.Want("10 minutes after it had gone the first time", "")
		s.Now = s.Now.Add(9 * time.Minute)
		s.Want("10 minutes after it had gone", `
trim clusters: cds/cds.json
trim files: -eds/blue/eds.json`)
	})
	t.Run("a cluster", func(t *testing.T) {
		s := fixture.New(t, nil)
		with, without := fixture.Tree(fixture.Blue, fixture.BlueEndpoints, fixture.Green, fixture.GreenEndpoints, routes), fixture.Tree(fixture.Green, fixture.GreenEndpoints, routes)
		s.Tree(with)
		s.Publish()
		s.Tree(without)
		s.Publish()
		s.Now = s.Now.Add(9 * time.Minute)
		s.Tree(strings.Replace(with, "cluster: green", "cluster: blue", 1) + "---\n" + fmt.Sprintf(fixture.Listener, "x") + "\n---\n" + fmt.Sprintf(fixture.Secret, "x"))
		s.Stop(2)
		s.Tree(without)
		s.Want("blue goes, and what routes to it", "routes that no listener asks for yet: rds/main/rds.json")
		s.Now = s.Now.Add(9 * time.Minute)
		s.Want("not 10 minutes after that", "")
	})
}

// TestClockSetBack checks that a retired time in the future counts as now.
func TestClockSetBack(t *testing.T) {
	s := fixture.New(t, nil)
	s.Tree(fixture.Tree(fixture.Blue, fixture.BlueEndpoints, fixture.Green, fixture.GreenEndpoints))
	s.Publish()
	s.Tree(fixture.Tree(fixture.Green, fixture.GreenEndpoints))
	s.Publish()
	s.Now = s.Now.Add(-24 * time.Hour)
	s.Want("nothing changed", "")
	if want := s.Now.Add(10 * time.Minute); !s.Next.Equal(want) {
		t.Errorf("the next trim is at %v, want %v", s.Next, want)
	}
	s.Now = s.Next
	s.Want("in time", `
trim clusters: cds/cds.json
trim files: -eds/blue/eds.json`)
}

// TestClockSetForward checks that a watch shifts retired times when the clock is set forward, so that trim
// delays stay as long. This also holds within an interrupted change.
func TestClockSetForward(t *testing.T) {
	s := fixture.New(t, nil)
	var ran time.Duration // the time of a clock that nobody sets
	passes := func(d time.Duration) { s.Now, ran = s.Now.Add(d), ran+d }
	s.Restart(func(o *pipeline.Options) {
		o.Clock = trim.NewClock(func() (time.Time, time.Duration) { return s.Now, ran })
	})
	s.Tree(fixture.Tree(fixture.Blue, fixture.BlueEndpoints, fixture.Green, fixture.GreenEndpoints))
	s.Publish()
	s.Tree(fixture.Tree(fixture.Green, fixture.GreenEndpoints))
	s.Publish()
	passes(4 * time.Minute)
	s.Now = s.Now.Add(24 * time.Hour)
	s.Want("the clock is set", "")
	if want := s.Now.Add(6 * time.Minute); !s.Next.Equal(want) {
		t.Errorf("the next trim is at %v, want %v", s.Next, want)
	}
	passes(time.Minute)
	s.Tree(fixture.Tree(fixture.Green, fixture.GreenEndpoints, fmt.Sprintf(fixture.Secret, "x"), fmt.Sprintf(fixture.Listener, "x"), fmt.Sprintf(fixture.RoutesTo, "green")))
	s.Stop(1)
	s.Now = s.Now.Add(24 * time.Hour)
	keepTime(s)
	s.Publish()
	for range 40 { // a time service moves the clock in small steps, which add up
		passes(6 * time.Second)
		s.Now = s.Now.Add(time.Second / 4)
		s.Want("too early", "")
	}
	passes(time.Minute + 2*time.Second)
	s.Want("in time", `
trim clusters: cds/cds.json
trim files: -eds/blue/eds.json`)
}

// keepTime shifts the recorded times by the clock.
func keepTime(s *fixture.Fixture) {
	s.T.Helper()
	dir, err := publish.Open(s.Options.Out, publish.Options{})
	if err != nil {
		s.T.Fatal(err)
	}
	defer dir.Close()
	if err := s.P.KeepTime(dir); err != nil {
		s.T.Error(err)
	}
}

// TestTrimOfWhatIsNamed checks that Trim keeps a file that a published resource names, whatever the record
// says.
func TestTrimOfWhatIsNamed(t *testing.T) {
	s := fixture.New(t, nil)
	s.Tree(fixture.Tree(fixture.Blue, fixture.BlueEndpoints, fixture.Green, fixture.GreenEndpoints))
	s.Publish()
	dir, err := publish.Open(s.Options.Out, publish.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	m, err := publish.ReadManifest(s.Options.Out)
	if err != nil {
		t.Fatal(err)
	}
	m.Retired = []publish.Retired{{File: "eds/blue/eds.json", Since: s.Now.Add(-time.Hour)}}
	if _, err := dir.Publish(t.Context(), publish.Plan{Manifest: m}); err != nil {
		t.Fatal(err)
	}
	result, next, err := s.P.Trim(t.Context(), dir, s.Now)
	if want := s.Now.Add(10 * time.Minute); err != nil || len(result.Steps) > 0 || !next.Equal(want) {
		t.Errorf("trimmed %v, the next time at %v, %v, want %v", result.Steps, next, err, want)
	}
	if _, err := os.Stat(filepath.Join(s.Options.Out, "eds/blue/eds.json")); err != nil {
		t.Error(err)
	}
}

// TestTrim checks that retired clusters and files stay during the trim delay, and that Trim then removes
// clusters before the files that they read.
func TestTrim(t *testing.T) {
	s := fixture.New(t, nil)
	s.Tree(fixture.Tree(fixture.Blue, fixture.Green, fixture.BlueEndpoints, fixture.GreenEndpoints, fmt.Sprintf(fixture.RoutesTo, "blue"), fmt.Sprintf(fixture.Listener, "a"), fixture.Layer))
	s.Publish()

	s.Tree(fixture.Tree(fixture.Green, fixture.GreenEndpoints, fmt.Sprintf(fixture.RoutesTo, "green"), fmt.Sprintf(fixture.Listener, "a")))
	s.Want("blue is dropped: its cluster stays, an empty layer stands in", `
secrets, extensions, runtime: rtds/flags/rtds.json
routes: rds/main/rds.json`)
	if diff := cmp.Diff([]string{"blue", "green"}, s.Clusters()); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
	if want := s.Now.Add(10 * time.Minute); !s.Next.Equal(want) {
		t.Errorf("the next trim is at %v, want %v", s.Next, want)
	}
	s.Now = s.Now.Add(9 * time.Minute)
	s.Want("too early", "")

	s.Now = s.Now.Add(2 * time.Minute)
	s.Want("in time", `
trim clusters: cds/cds.json
trim files: -eds/blue/eds.json`)
	if diff := cmp.Diff([]string{"green"}, s.Clusters()); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
	if _, err := os.Stat(filepath.Join(s.Options.Out, "eds/blue")); err != nil {
		t.Errorf("the folder must stay for ever: %v", err)
	}
	s.Want("nothing is left to do", "")
}

// TestStopped checks that Trim removes nothing that an interrupted plan has retired, however long ago that was.
func TestStopped(t *testing.T) {
	s := fixture.New(t, nil)
	s.Tree(fixture.Tree(fixture.Blue, fixture.Green, fixture.BlueEndpoints, fixture.GreenEndpoints, fmt.Sprintf(fixture.RoutesTo, "blue"), fmt.Sprintf(fixture.Listener, "a")))
	s.Publish()
	s.Tree(fixture.Tree(fixture.Green, fixture.GreenEndpoints, fmt.Sprintf(fixture.RoutesTo, "green"), fmt.Sprintf(fixture.Listener, "b")))
	s.Stop(1)

	dir, err := publish.Open(s.Options.Out, publish.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.Now = s.Now.Add(time.Hour)
	if result, next, err := s.P.Trim(t.Context(), dir, s.Now); err != nil || len(result.Steps) > 0 || !next.IsZero() {
		t.Errorf("trims at once: %v, %v, %v", result, next, err)
	}
	if err := dir.Close(); err != nil {
		t.Fatal(err)
	}
	s.Publish()
	if diff := cmp.Diff([]string{"blue", "green"}, s.Clusters()); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
}

// TestTrimReadsWhenDue checks that Trim does not read the file of all clusters while nothing is due, because
// that would take time in proportion to the tree in each pass.
func TestTrimReadsWhenDue(t *testing.T) {
	s := fixture.New(t, nil)
	s.Tree(fixture.Tree(fixture.Blue, fixture.BlueEndpoints, fixture.Green, fixture.GreenEndpoints))
	s.Publish()
	s.Tree(fixture.Tree(fixture.Blue, fixture.BlueEndpoints))
	s.Publish()
	due := s.Next
	dir := s.Open()
	if err := os.WriteFile(filepath.Join(s.Options.Out, "cds/cds.json"), []byte("edited by hand"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ now, next time.Time }{{s.Now, due}, {due, time.Time{}}} {
		result, next, err := s.P.Trim(t.Context(), dir, step.now)
		if err != nil || len(result.Steps) > 0 || !next.Equal(step.next) {
			t.Errorf("at %v: %v, again at %v, want %v; %v", step.now, result.Steps, next, step.next, err)
		}
	}
}
