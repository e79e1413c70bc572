package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"xdspub/diag"
	"xdspub/source/load"
)

// values are what the flags of a command say, completed by the settings file of
// a source tree: flags win, then the environment, then the file.
type values struct {
	c    *cli.Context
	file map[string]any          // the settings that no flag and no variable overrides
	at   map[string]load.Setting // where they stand
	tree string                  // whose own settings file it is; empty for any other
	own  ownTypes
}

// value is that of one flag. lookup is the context's for flags of its kind, such
// as c.String.
func value[T any](v values, name string, lookup func(string) T) T {
	if x, ok := v.file[name]; ok {
		return x.(T)
	}
	return lookup(name)
}

// invalid says that the text given for a flag is not one that it takes, where that stands, and
// what would do.
func (v values) invalid(name, text, wants string) error {
	if _, ok := v.file[name]; ok {
		at := v.at[name].Position
		if i := slices.IndexFunc(v.at[name].Parts, func(item load.SettingValue) bool { return item.Text == text }); i >= 0 {
			at = v.at[name].Parts[i].Position
		}
		return usagef("%s: invalid %s %q: %s", at, name, text, wants)
	}
	if variable := env(name)[0]; text != "" && strings.Contains(os.Getenv(variable), text) {
		return usagef("invalid %s %q: %s", variable, text, wants)
	}
	return usagef("invalid --%s %q: %s", name, text, wants)
}

// check returns an error for the first of some flags whose value has the right type and is
// invalid.
func (v values) check(flags []cli.Flag) error {
	for _, f := range flags {
		var x any
		name := f.Names()[0]
		switch f.(type) {
		case *cli.StringFlag:
			x = value(v, name, v.c.String)
		case *cli.IntFlag:
			x = value(v, name, v.c.Int)
		case *cli.DurationFlag:
			x = value(v, name, v.c.Duration)
		}
		if wants := wants(name, x); wants != "" {
			return v.invalid(name, fmt.Sprint(x), wants)
		}
	}
	return nil
}

// parse makes a text the value of a flag: of the type that its context returns, but for lists.
// The error says what would do.
func parse(f cli.Flag, text string) (any, error) {
	var x any = text
	var err error
	wants := ""
	switch f.(type) {
	case *cli.BoolFlag:
		x, err = strconv.ParseBool(text)
		wants = "write true or false"
	case *cli.IntFlag:
		x, err = strconv.Atoi(text)
		wants = "write a whole number"
	case *cli.DurationFlag:
		x, err = time.ParseDuration(text)
		wants = "write a time such as 500ms, 90s or 10m"
		if _, number := strconv.Atoi(text); number == nil {
			wants = fmt.Sprintf("write the time with its unit: %[1]ss, %[1]sms or %[1]sm", text)
		}
	}
	if err != nil {
		return nil, errors.New(wants)
	}
	return x, nil
}

// env names the environment variable of a flag: XDSPUB_<NAME>.
func env(flag string) []string {
	return []string{variablePrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))}
}

const variablePrefix = "XDSPUB_"

// dropEmptyVariables makes an empty variable one that is not set, as people mean
// it. The library would take it for the value "".
func dropEmptyVariables() {
	for name, value := range variables() {
		if value == "" {
			os.Unsetenv(name)
		}
	}
}

// variables returns those of the environment that have our prefix.
func variables() map[string]string {
	found := make(map[string]string)
	for _, v := range os.Environ() {
		if name, value, _ := strings.Cut(v, "="); strings.HasPrefix(name, variablePrefix) {
			found[name] = value
		}
	}
	return found
}

// checkVariables returns an error for the first variable of a command's flags whose value is
// invalid.
func checkVariables(c *cli.Command) error {
	for _, f := range c.Flags {
		for _, variable := range f.(cli.DocGenerationFlag).GetEnvVars() {
			text := os.Getenv(variable)
			if text == "" {
				continue
			}
			if _, err := parse(f, text); err != nil {
				return usagef("invalid %s %q: %v", variable, text, err)
			}
		}
	}
	return nil
}

// warnMisspelt warns of variables that look like one of a flag, misspelt. Others are none of
// ours: Kubernetes sets XDSPUB_PORT and more beside a service of the program's name.
func warnMisspelt(w io.Writer, commands []*cli.Command) {
	known := flagVariables(commands)
	near := diag.NewCandidates(known)
	set := variables()
	for _, name := range slices.Sorted(maps.Keys(set)) {
		meant := near.Nearest(strings.TrimPrefix(name, variablePrefix))
		if meant != "" && variablePrefix+meant != name {
			fmt.Fprintf(w, "xdspub: unknown variable %s is ignored: did you mean %s%s?\n", name, variablePrefix, meant)
		}
	}
}

// flagVariables returns the variables of all flags, without the prefix.
func flagVariables(commands []*cli.Command) (names []string) {
	for _, c := range commands {
		for _, f := range c.Flags {
			for _, variable := range f.(cli.DocGenerationFlag).GetEnvVars() {
				names = append(names, strings.TrimPrefix(variable, variablePrefix))
			}
		}
		names = append(names, flagVariables(c.Subcommands)...)
	}
	return names
}
