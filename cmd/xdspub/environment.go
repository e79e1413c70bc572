package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"xdspub/cmd/settings"
	"xdspub/diag"
)

// variables returns the environment variables that begin with settings.VariablePrefix. variables omits empty
// ones, which count as unset.
func variables() map[string]string {
	found := make(map[string]string)
	for _, v := range os.Environ() {
		if name, value, _ := strings.Cut(v, "="); value != "" && strings.HasPrefix(name, settings.VariablePrefix) {
			found[name] = value
		}
	}
	return found
}

// warnMisspelt warns of variables that look like the misspelt variable of an option. Other variables may belong
// to somebody else: Kubernetes sets XDSPUB_PORT and more for a service named xdspub.
func warnMisspelt(w io.Writer, commands []*cli.Command) {
	known := flagVariables(commands)
	near := diag.NewCandidates(known)
	set := variables()
	for _, name := range slices.Sorted(maps.Keys(set)) {
		meant := near.Nearest(strings.TrimPrefix(name, settings.VariablePrefix))
		if meant != "" && settings.VariablePrefix+meant != name {
			fmt.Fprintf(w, "xdspub: unknown variable %s is ignored: did you mean %s%s?\n", name, settings.VariablePrefix, meant)
		}
	}
}

// flagVariables returns the variables of all options, without the prefix.
func flagVariables(commands []*cli.Command) (names []string) {
	for _, c := range commands {
		for _, r := range rowsOf(c) {
			if r.Variable() != "" {
				names = append(names, strings.TrimPrefix(r.Variable(), settings.VariablePrefix))
			}
		}
		names = append(names, flagVariables(c.Subcommands)...)
	}
	return names
}
