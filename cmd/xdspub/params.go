package main

import (
	"strings"

	"github.com/urfave/cli/v2"

	"xdspub/xds/params"
)

func paramFlag() cli.Flag {
	return &cli.StringSliceFlag{Category: groupSource, Name: "param", EnvVars: env("param"), Usage: "a dynamic parameter `KEY=VALUE` of the client: of a resource with variants it gets the one whose constraints match (default: no parameters; for validate and serve, those of any client)"}
}

// clientOf returns the dynamic parameters of the client that --param, or another flag like it, is about.
func clientOf(v values, flag string) (params.Parameters, error) {
	client := make(params.Parameters)
	for _, text := range value(v, flag, v.c.StringSlice) {
		key, is, ok := strings.Cut(text, "=")
		if !ok || key == "" {
			return nil, v.invalid(flag, text, "write KEY=VALUE, such as env=prod")
		}
		if was, twice := client[key]; twice && was != is {
			return nil, v.invalid(flag, text, "this key has a value already: a client sends one")
		}
		client[key] = is
	}
	return client, nil
}
