package main

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/urfave/cli/v2"
)

func versionCommand() *cli.Command {
	return &cli.Command{
		Name:  "version",
		Usage: "print the version of xdspub, its commit, and the version of Envoy's API that it knows",
		Action: action(func(c *call) error {
			if c.NArg() > 0 {
				return usagef("version takes no arguments")
			}
			return writeVersion(c.App.Writer)
		}),
	}
}

func versionFlag() cli.Flag {
	return &cli.BoolFlag{Name: "version", Aliases: []string{"v"}, Usage: "print the version"}
}

// version has the version of the program, and of Envoy's API in it.
type version struct {
	program string
	commit  string // empty if unknown, or if the version has the commit
	api     string // the version of Envoy's API
}

// buildVersion returns the version from the build information. go install records a version, and a build in a
// clone records the commit.
func buildVersion() version {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version{program: "unknown", api: "unknown"}
	}
	return versionOf(info)
}

func versionOf(info *debug.BuildInfo) version {
	v := version{program: cmp.Or(info.Main.Version, "unknown"), api: "unknown"}
	for _, m := range info.Deps {
		if m.Path == "github.com/envoyproxy/go-control-plane/envoy" {
			v.api = m.Version
		}
	}
	changed := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			v.commit = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = " with changes"
		}
	}
	switch {
	case v.commit == "":
	case strings.Contains(v.program, v.commit):
		v.commit = ""
	default:
		v.commit += changed
	}
	return v
}

func (v version) String() string {
	commit := ""
	if v.commit != "" {
		commit = ", commit " + v.commit
	}
	return fmt.Sprintf("xdspub %s%s, Envoy API %s, %s %s/%s", v.program, commit, v.api, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func writeVersion(w io.Writer) error {
	_, err := fmt.Fprintln(w, buildVersion())
	return err
}
