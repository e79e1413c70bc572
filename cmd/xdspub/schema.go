package main

import (
	"io"

	"github.com/urfave/cli/v2"

	"xdspub/cmd/settings"
)

func schemaCommand() *cli.Command {
	return &cli.Command{
		Name:  "schema",
		Usage: "print a JSON Schema of xdspub.yaml, for an editor",
		Description: `An editor with the YAML language server takes it by a comment in xdspub.yaml:
  # yaml-language-server: $schema=xdspub.schema.json

Example:
  xdspub schema > config/.xdspub.schema.json`,
		Action: action(func(c *call) error {
			if c.NArg() > 0 {
				return usagef("schema takes no arguments")
			}
			return writeSchema(c.App.Writer)
		}),
	}
}

func writeSchema(w io.Writer) error { return writeJSON(w, settings.FileSchema()) }
