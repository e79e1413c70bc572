package main

import (
	"xdspub/check"
	"xdspub/check/oracle"
	"xdspub/cmd/settings"
	"xdspub/envoy/trial"
)

// oracleOf returns the Envoy of --envoy; nil without --envoy.
func oracleOf(v *call, o check.Rules) (*oracle.Oracle, error) {
	program, mode := v.Envoy.Value, v.EnvoyMode.Value
	if err := v.EnvoyMode.Check(); err != nil {
		return nil, err
	}
	switch {
	case !v.Envoy.Given() && v.EnvoyMode.Given():
		return nil, usagef("--envoy-mode needs --envoy, the Envoy that judges")
	case !v.Envoy.Given():
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
	if mode == settings.ModeShadow {
		return oracle.Shadow(envoy), nil
	}
	return oracle.New(envoy), nil
}
