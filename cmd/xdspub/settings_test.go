package main

import (
	"fmt"
	"slices"
	"testing"

	"github.com/urfave/cli/v2"

	"xdspub/source/load"
)

// TestSettingPaths holds that each file and folder in a settings file is looked for from the folder of
// that file, but for the one that Envoy sees.
func TestSettingPaths(t *testing.T) {
	flags := settingFlags()
	for _, f := range flags {
		name := f.Names()[0]
		if of := placeholder(f); of != "FILE" && of != "DIR" || name == "envoy-path" {
			continue
		}
		want := any("conf/x")
		if _, list := f.(*cli.StringSliceFlag); list {
			want = []string{"conf/x"}
		}
		got, err := setting(flags, load.Setting{SettingValue: load.SettingValue{Key: name, Text: "x"}}, "conf")
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if !slices.Contains(flagNames(flags), "envoy-log") {
		t.Error("no flag envoy-log")
	}
}
