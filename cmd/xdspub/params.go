package main

import (
	"strings"

	"xdspub/cmd/settings"
	"xdspub/xds/params"
	"xdspub/xds/variants"
)

// clientOf returns the client with the dynamic parameters of --param, or of a similar option.
func clientOf(given settings.Value[[]string]) (client variants.Client, err error) {
	client.Parameters = make(params.Parameters)
	for _, text := range given.Value {
		key, is, ok := strings.Cut(text, "=")
		if !ok || key == "" {
			return client, given.Invalid(text, "write KEY=VALUE, such as env=prod")
		}
		if was, twice := client.Parameters[key]; twice && was != is {
			return client, given.Invalid(text, "this key has a value already: a client sends one value for a key")
		}
		client.Parameters[key] = is
	}
	return client, nil
}
