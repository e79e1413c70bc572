package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"xdspub/load"
)

func stdinFormatFlag() cli.Flag {
	return &cli.StringFlag{Name: "stdin-format", Value: "yaml", Usage: "format of standard input, which - stands for: `" + strings.Join(load.Formats, "|") + "`"}
}

// standardInput reads what - stands for.
func standardInput(c *cli.Context) (load.Input, error) {
	in := load.Input{Name: "<stdin>", Format: c.String("stdin-format")}
	if !slices.Contains(load.Formats, in.Format) {
		return in, usagef("--stdin-format %q is none of %s", in.Format, strings.Join(load.Formats, ", "))
	}
	// One byte more than a file may have tells that it is too much.
	data, err := io.ReadAll(io.LimitReader(c.App.Reader, load.MaxBytes+1))
	switch {
	case err != nil:
		return in, fmt.Errorf("read standard input: %w", err)
	case len(data) > load.MaxBytes:
		return in, fmt.Errorf("standard input is larger than %d bytes", load.MaxBytes)
	}
	in.Data = data
	return in, nil
}
