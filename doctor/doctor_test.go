package doctor

import (
	"context"
	"slices"
	"strings"
	"testing"

	"xdspub/diag"
	"xdspub/doctor/machine"
	"xdspub/watch/control"
	"xdspub/watch/status"
)

// TestVolumes tests the judgement on file systems that this machine can't mount: NFS and 9p need a server.
func TestVolumes(t *testing.T) {
	elsewhere := &examination{Options: Options{Status: status.Options{Out: "out"}}}
	polled := &examination{polled: map[string]bool{"eds/web/eds.json": true}}
	for _, c := range []struct {
		name string
		e    *examination
		v    machine.Volume
		want string // severity and a part of the message
	}{
		{"local", elsewhere, machine.Volume{}, ""},
		{"nfs", elsewhere, machine.Volume{Kind: "nfs", Remote: true}, "warning: the output directory is on nfs"},
		{"9p", elsewhere, machine.Volume{Kind: "9p", Remote: true}, "warning: the output directory is on 9p"},
		{"nfs, polled", polled, machine.Volume{Kind: "nfs", Remote: true}, ""},
		{"overlay", elsewhere, machine.Volume{Kind: "overlay"}, "info: the output directory is in the own layer of a container"},
	} {
		list := c.e.outputEvents(c.v)
		switch {
		case c.want == "" && len(list) > 0, c.want != "" && len(list) != 1:
			t.Errorf("%s: %v", c.name, list)
		case c.want != "" && (!strings.HasPrefix(list[0].Severity.String()+": "+list[0].Message, c.want) || list[0].Help == ""):
			t.Errorf("%s: %+v", c.name, list[0])
		}
	}
}

// TestUnwatchedSource tests the state of a watch that gets no events of a part of the tree, as if a folder of another
// user were in the tree, which the root of tests can always read.
func TestUnwatchedSource(t *testing.T) {
	for notices, want := range map[control.Notices]int{control.ByEvents: 0, control.ByPolling: 0, control.ByPart: 1} {
		e := &examination{status: &status.Status{Watch: &control.Watch{Source: "/src", Notices: notices}}}
		if list := unwatchedSource(t.Context(), e); len(list) != want || want == 1 && list[0].Help == "" {
			t.Errorf("%s: %v", notices, list)
		}
	}
}

// TestOlder compares versions. An Envoy older than all that xdspub knows can't be run here.
func TestOlder(t *testing.T) {
	for version, want := range map[string]bool{"1.9.0": true, "1.30.2": true, "1.36.0": false, "1.41.0": false, "2.0.0": false, "": false, "dev": false, "0.9": true} {
		if got := older(version, "1.36"); got != want {
			t.Errorf("%s is older: %v, want %v", version, got, want)
		}
	}
}

// TestChecks: each check has a code of its own with a documentation, and says what it looks at.
func TestChecks(t *testing.T) {
	var names []string
	for _, c := range checks {
		if c.at == "" || c.find == nil || slices.Contains(names, c.code.Name) {
			t.Errorf("%+v", c.code)
		}
		names = append(names, c.code.Name)
	}
	for _, c := range Codes() {
		if summary := c.Summary(); !strings.HasSuffix(summary, ".") || len(strings.Split(c.Doc, "\n")) < 3 {
			t.Errorf("%s has no summary and reason", c.Name)
		}
	}
}

// TestUnknown: several checks that could not look for one reason make one finding.
func TestUnknown(t *testing.T) {
	defer func(all []inspection) { checks = all }(checks)
	blind := func(reason string) inspection {
		return inspection{at: "the " + reason, find: func(context.Context, *examination) diag.List { return diag.List{notExamined("it is dark", "")} }}
	}
	checks = []inspection{blind("left"), blind("right")}
	list, incomplete := run(t.Context(), &examination{})
	if len(list) != 1 || incomplete != 2 || list[0].Message != "not examined: the left; the right, because it is dark" {
		t.Errorf("%v", list)
	}
}
