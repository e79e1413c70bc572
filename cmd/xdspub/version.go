package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v2"
)

func versionCommand() *cli.Command {
	return &cli.Command{
		Name:  "version",
		Usage: "print the version of xdspub, and of Envoy's API that it knows",
		Action: func(c *cli.Context) error {
			if c.NArg() > 0 {
				return usagef("version takes no arguments")
			}
			return writeVersion(c.App.Writer)
		},
	}
}

func versionFlag() cli.Flag {
	return &cli.BoolFlag{Name: "version", Aliases: []string{"v"}, Usage: "print the version"}
}

// versions returns the version of the program, and that of the API that it was built with.
func versions() (program, api string) {
	program, api = "unknown", "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		program = info.Main.Version
		for _, m := range info.Deps {
			if m.Path == "github.com/envoyproxy/go-control-plane/envoy" {
				api = m.Version
			}
		}
	}
	return program, api
}

func writeVersion(w io.Writer) error {
	version, api := versions()
	_, err := fmt.Fprintf(w, "xdspub %s, Envoy API %s, %s %s/%s\n", version, api, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
