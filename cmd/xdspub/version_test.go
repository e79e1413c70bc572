package main

import (
	"runtime/debug"
	"strings"
	"testing"
)

func TestVersion(t *testing.T) {
	api := []*debug.Module{{Path: "github.com/envoyproxy/go-control-plane/envoy", Version: "v1.40.0"}}
	commit := debug.BuildSetting{Key: "vcs.revision", Value: "0123456789abcdef0123"}
	for want, info := range map[string]*debug.BuildInfo{
		"xdspub v1.2.3, Envoy API v1.40.0, ":                                       {Main: debug.Module{Version: "v1.2.3"}, Deps: api},
		"xdspub (devel), commit 0123456789ab, Envoy API v1.40.0, ":                 {Main: debug.Module{Version: "(devel)"}, Deps: api, Settings: []debug.BuildSetting{commit, {Key: "vcs.modified", Value: "false"}}},
		"xdspub v1.2.4+dirty, commit 0123456789ab with changes, Envoy API v1.40.0": {Main: debug.Module{Version: "v1.2.4+dirty"}, Deps: api, Settings: []debug.BuildSetting{commit, {Key: "vcs.modified", Value: "true"}}},
		"xdspub v0.0.0-20260102030405-0123456789ab+dirty, Envoy API v1.40.0":       {Main: debug.Module{Version: "v0.0.0-20260102030405-0123456789ab+dirty"}, Deps: api, Settings: []debug.BuildSetting{commit}},
		"xdspub unknown, Envoy API unknown, ":                                      {},
	} {
		if got := versionOf(info).String(); !strings.HasPrefix(got, want) {
			t.Errorf("%s, want %s…", got, want)
		}
	}
}
