package main

import (
	"flag"

	"github.com/urfave/cli/v2"

	"xdspub/cmd/settings"
)

// option is a row of settings as a flag of the library. commandLine reads the options, so that the library gets
// command lines without them.
type option struct{ settings.Row }

// options returns rows as flags.
func options(rows []settings.Row) (flags []cli.Flag) {
	for _, r := range rows {
		flags = append(flags, option{r})
	}
	return flags
}

// rowsOf returns the rows of a command.
func rowsOf(c *cli.Command) (rows []settings.Row) {
	for _, f := range c.Flags {
		if o, ok := f.(option); ok {
			rows = append(rows, o.Row)
		}
	}
	return rows
}

func (o option) String() string            { return o.Name() }
func (o option) Apply(*flag.FlagSet) error { return nil }
func (o option) IsSet() bool               { return false }

// usageOf returns the description of a flag.
func usageOf(f cli.Flag) string {
	if o, ok := f.(option); ok {
		return o.Usage()
	}
	return f.(cli.DocGenerationFlag).GetUsage()
}
