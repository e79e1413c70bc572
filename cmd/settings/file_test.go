package settings

import (
	"fmt"
	"testing"

	"xdspub/source/settingsfile"
)

// TestPaths checks that a path in a settings file is relative to the folder of the settings file, except the
// path that Envoy sees.
func TestPaths(t *testing.T) {
	paths := 0
	for _, r := range Settable() {
		if of := Placeholder(r.Usage()); of != "FILE" && of != "DIR" || r.Name() == "envoy-path" {
			continue
		}
		paths++
		var s Settings
		in := settingsfile.Setting{Value: settingsfile.Value{Key: r.Name(), Text: "x"}}
		if err := r.readFile(&s, in, file{dir: "conf"}); err != nil {
			t.Errorf("%s: %v", r.Name(), err)
		}
		var got string
		switch r := r.(type) {
		case *setting[string]:
			got = r.into(&s).Value
		case *setting[[]string]:
			got = fmt.Sprint(r.into(&s).Value)
		}
		if got != "conf/x" && got != "[conf/x]" {
			t.Errorf("%s: %s", r.Name(), got)
		}
	}
	if paths < 8 {
		t.Errorf("only %d settings are paths", paths)
	}
}

// TestRows checks that each row can be read, explained and compared, and that rows of the same name in several
// commands set the same field, if a settings file can have them.
func TestRows(t *testing.T) {
	for name, rows := range map[string][]Row{
		"validate": Validate(), "render": Render(), "watch": Watched(), "serve": Served(), "status": Status(), "doctor": Doctor(), "bootstrap envoy": BootstrapEnvoy(),
		"bootstrap grpc": BootstrapGRPC(), "import": Import(), "convert": Convert(), "rules": Rules(), "explain-params": ExplainParams(), "diff": Diff(),
		"history": History(), "approve": Approve(), "rollout status": RolloutStatus(), "rollout abort": DecideRollout(),
	} {
		known := make(map[string]bool)
		for _, r := range rows {
			if r.Usage() == "" || known[r.Name()] {
				t.Errorf("%s: %s has no usage, or is there twice", name, r.Name())
			}
			known[r.Name()] = true
		}
		s, err := New(rows, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			if o := r.Origin(s); o.Given() || o.InFile() || o.Name() != r.Name() {
				t.Errorf("%s: %s is not its default: two rows have one field", name, r.Name())
			}
			if err := r.check(s); err != nil && r.Default() != "" {
				t.Errorf("%s: the default breaks the law: %v", name, err)
			}
		}
	}
}
