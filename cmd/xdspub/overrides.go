package main

import (
	"maps"
	"slices"

	"xdspub/check"
	"xdspub/check/policy"
	"xdspub/cmd/settings"
	"xdspub/diag"
)

// override sets the rules of o by the settings rules and overrides of a settings file. --enable and --disable
// win if the command line or the environment gives them.
func override(v *call, o *check.Options) {
	base := maps.Clone(v.Severities.Value)
	if base == nil {
		base = make(settings.Levels)
	}
	if v.Enable.Given() { // the command line and the environment win over the file
		for _, code := range o.Enable {
			if level, set := base[code]; level == policy.Dropped || !set && base[diag.CodeOf(code)] == policy.Dropped {
				base[code] = policy.Kept
			}
		}
	}
	some := v.Overrides.Value
	for _, code := range some.Enabled() {
		optIn := slices.Contains(check.OptIn(), diag.CodeOf(code))
		if _, set := base[code]; !set && optIn && !slices.Contains(o.Enable, code) && !slices.Contains(o.Enable, diag.CodeOf(code)) {
			base[code] = policy.Dropped // in all other files
		}
	}
	if len(base) > 0 {
		some = slices.Concat(policy.Overrides{{Levels: base}}, some)
	}
	o.Overrides = some
	enabled := some.Enabled()
	if v.Disable.Given() { // as above
		enabled = slices.DeleteFunc(enabled, func(code string) bool { return slices.Contains(o.Disable, diag.CodeOf(code)) })
	}
	o.Disable, o.Enable = slices.Concat(o.Disable, some.Disabled()), slices.Concat(o.Enable, enabled)
}
