package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v2"
)

func versionCommand() *cli.Command {
	return &cli.Command{
		Name:  "version",
		Usage: "say which version this is, and for which Envoy",
		Action: func(c *cli.Context) error {
			if c.NArg() > 0 {
				return usagef("version wants no arguments")
			}
			version, api := "unknown", "unknown"
			if info, ok := debug.ReadBuildInfo(); ok {
				version = info.Main.Version
				for _, m := range info.Deps {
					if m.Path == "github.com/envoyproxy/go-control-plane/envoy" {
						api = m.Version
					}
				}
			}
			_, err := fmt.Fprintf(c.App.Writer, "xdspub %s, Envoy API %s, %s %s/%s\n", version, api, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
