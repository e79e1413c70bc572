package main

import (
	"github.com/urfave/cli/v2"

	"xdspub/check"
	"xdspub/check/oracle"
	"xdspub/envoy/trial"
)

// The values of --envoy-mode.
const (
	modeValidate = "validate"
	modeShadow   = "shadow"
)

// oracleFlags name a program to run. They have no variables and are no settings: only who starts xdspub
// says that.
func oracleFlags() []cli.Flag {
	return []cli.Flag{
		&cli.PathFlag{Category: groupRules, Name: "envoy", Usage: "have the Envoy `FILE|auto` judge what no rule finds an error in; auto: the envoy in PATH"},
		&cli.StringFlag{Category: groupRules, Name: "envoy-mode", Value: modeValidate, Usage: "how --envoy judges, `validate|shadow`; validate: by --mode validate; shadow: and then as it loads the files, opening no port"},
	}
}

// oracleOf returns the Envoy that --envoy names; nil where it is not given.
func oracleOf(v values, o check.Rules) (*oracle.Oracle, error) {
	program, mode := v.c.Path("envoy"), v.c.String("envoy-mode")
	switch {
	case mode != modeValidate && mode != modeShadow:
		return nil, usagef("invalid --envoy-mode %q: %s", mode, oneOf([]string{modeValidate, modeShadow}, mode))
	case !v.c.IsSet("envoy") && v.c.IsSet("envoy-mode"):
		return nil, usagef("--envoy-mode says how --envoy judges, and that is not given")
	case !v.c.IsSet("envoy"):
		return nil, nil
	case program == "":
		return nil, usagef("invalid --envoy \"\": name a program, or write auto")
	case !o.ForEnvoys():
		return nil, usagef("--envoy judges for Envoys, and --profile names none")
	case program == "auto":
		program = "envoy"
	}
	envoy, err := trial.Find(program)
	if err != nil {
		return nil, err
	}
	if mode == modeShadow {
		return oracle.Shadow(envoy), nil
	}
	return oracle.New(envoy), nil
}
