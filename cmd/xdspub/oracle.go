package main

import (
	"github.com/urfave/cli/v2"

	"xdspub/bootstrap/trial"
	"xdspub/check"
	"xdspub/oracle"
)

// envoyFlag names a program to run. It has no variable and is no setting: only who starts xdspub
// says that.
func envoyFlag() cli.Flag {
	return &cli.PathFlag{Category: groupRules, Name: "envoy", Usage: "have the Envoy `FILE|auto` judge what no rule finds an error in, by --mode validate; auto: the envoy in PATH"}
}

// oracleOf returns the Envoy that --envoy names; nil where it is not given.
func oracleOf(v values, o check.Rules) (*oracle.Oracle, error) {
	program := v.c.Path("envoy")
	switch {
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
	return oracle.New(envoy), nil
}
