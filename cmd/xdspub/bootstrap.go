package main

import (
	"github.com/urfave/cli/v2"
)

func bootstrapCommand() *cli.Command {
	return &cli.Command{
		Name:        "bootstrap",
		Usage:       "write a bootstrap for a client of what is published or served",
		Subcommands: []*cli.Command{bootstrapEnvoyCommand(), bootstrapGRPCCommand()},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return usagef("unknown client %q: use envoy or grpc", c.Args().First())
			}
			return usagef("bootstrap needs a client, envoy or grpc: see %s", helpFor("bootstrap"))
		},
	}
}
