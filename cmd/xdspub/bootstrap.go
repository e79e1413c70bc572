package main

import (
	"os"

	"github.com/urfave/cli/v2"
)

func bootstrapCommand() *cli.Command {
	return &cli.Command{
		Name:        "bootstrap",
		Usage:       "write a bootstrap for a client of what is published or served",
		Subcommands: []*cli.Command{bootstrapEnvoyCommand(), bootstrapGRPCCommand()},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return usagef("unknown client %q: %s", c.Args().First(), oneOf([]string{"envoy", "grpc"}, c.Args().First()))
			}
			return usagef("bootstrap needs a client, envoy or grpc: see %s", helpFor("bootstrap"))
		},
	}
}

// noSourceFlags refuses flags about a source tree where none is given. A variable that is set for
// another command does no harm.
func noSourceFlags(c *cli.Context) error {
	if c.Args().Present() {
		return nil
	}
	for _, name := range flagNames(sourceFlags()) {
		if name == "descriptor-set" && c.IsSet("from") {
			continue // it is for that, too
		}
		if c.IsSet(name) && os.Getenv(env(name)[0]) == "" {
			return usagef("--%s is for SRC, a source tree, and none is given", name)
		}
	}
	return nil
}
