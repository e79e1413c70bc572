package main

import (
	"github.com/urfave/cli/v2"

	"xdspub/cmd/settings"
)

func bootstrapCommand() *cli.Command {
	return &cli.Command{
		Name:        "bootstrap",
		Usage:       "write a bootstrap for a client of what is published or served",
		Subcommands: []*cli.Command{bootstrapEnvoyCommand(), bootstrapGRPCCommand()},
		Action: action(func(c *call) error {
			if c.Args().Present() {
				return usagef("unknown client %q: %s", c.Args().First(), settings.OneOf([]string{"envoy", "grpc"}, c.Args().First()))
			}
			return usagef("bootstrap needs a client, envoy or grpc: see %s", helpFor("bootstrap"))
		}),
	}
}

// noSourceFlags returns an error for an option about a source tree if no tree is given. noSourceFlags ignores
// variables, because they may be for other commands.
func noSourceFlags(c *call) error {
	if c.Args().Present() {
		return nil
	}
	of := *c.Settings
	if of.From.Given() {
		of.DescriptorSet = settings.Value[[]string]{} // descriptor sets are for bootstraps, too
	}
	for _, r := range settings.Source() {
		if r.Origin(&of).OnlyOnLine() {
			return usagef("--%s is for SRC, a source tree, and none is given", r.Name())
		}
	}
	return nil
}
