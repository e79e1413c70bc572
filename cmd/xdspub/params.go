package main

import (
	"strings"

	"github.com/urfave/cli/v2"

	"xdspub/xds/params"
	"xdspub/xds/variants"
)

func paramFlag() cli.Flag {
	return &cli.StringSliceFlag{Category: groupSource, Name: "param", EnvVars: env("param"), Usage: "a dynamic parameter `KEY=VALUE` of the client: of a resource with variants it gets the one whose constraints match (default: no parameters; for validate and serve, those of any client)"}
}

// clientOf returns the client that --param, or another flag like it, is about.
func clientOf(v values, flag string) (client variants.Client, err error) {
	client.Parameters = make(params.Parameters)
	for _, text := range value(v, flag, v.c.StringSlice) {
		key, is, ok := strings.Cut(text, "=")
		if !ok || key == "" {
			return client, v.invalid(flag, text, "write KEY=VALUE, such as env=prod")
		}
		if was, twice := client.Parameters[key]; twice && was != is {
			return client, v.invalid(flag, text, "this key has a value already: a client sends one")
		}
		client.Parameters[key] = is
	}
	return client, nil
}
