package main

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"xdspub/check"
	"xdspub/check/codes"
	"xdspub/check/policy"
	"xdspub/diag"
	"xdspub/source/load"
)

// The settings that no flag has: the severities of rules, for all files and for some.
const (
	rulesSetting     = "rules"
	overridesSetting = "overrides"
)

// levels are severities of rules, by code.
type levels = map[string]policy.Level

// override puts the settings rules and overrides into the options of a source tree.
func override(v values, o *check.Options) {
	base, _ := v.file[rulesSetting].(levels)
	base = maps.Clone(base)
	if base == nil {
		base = make(levels)
	}
	if v.c.IsSet("enable") { // the command line and the environment win over the file
		for _, code := range o.Enable {
			if level, set := base[code]; level == policy.Dropped || !set && base[diag.CodeOf(code)] == policy.Dropped {
				base[code] = policy.Kept
			}
		}
	}
	some, _ := v.file[overridesSetting].(policy.Overrides)
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
	if v.c.IsSet("disable") { // likewise
		enabled = slices.DeleteFunc(enabled, func(code string) bool { return slices.Contains(o.Disable, diag.CodeOf(code)) })
	}
	o.Disable, o.Enable = slices.Concat(o.Disable, some.Disabled()), slices.Concat(o.Enable, enabled)
}

// severities reads the setting rules, or overrides. It returns what is wrong in it.
func severities(s load.Setting) (any, diag.List) {
	r := severityReader{}
	if s.Key == rulesSetting {
		return r.levels(s.SettingValue, s.ValueAt, true), r.wrong
	}
	if s.Kind != load.SettingList {
		r.fail(s.Position, "overrides is a list: of files, and the rules that are different there")
	}
	var all policy.Overrides
	for _, part := range s.Parts {
		all = append(all, r.override(part))
	}
	return all, r.wrong
}

// severityReader collects what is wrong.
type severityReader struct{ findings }

// override reads an element of overrides.
func (r *severityReader) override(v load.SettingValue) (o policy.Override) {
	if v.Kind != load.SettingMapping {
		r.fail(v.Position, `an element of overrides has files and rules, such as {files: ["legacy/*"], rules: {weight-sum: off}}`)
		return o
	}
	before := len(r.wrong)
	for _, field := range v.Parts {
		switch field.Key {
		case "files":
			o.Files = r.patterns(field)
		case "rules":
			o.Levels = r.levels(field, field.Position, false)
		default:
			message := fmt.Sprintf("unknown setting %q in overrides: it has files and rules", field.Key)
			if meant := nearest([]string{"files", "rules"}, field.Key); meant != "" {
				message = fmt.Sprintf("unknown setting %q in overrides: did you mean %s?", field.Key, meant)
			}
			r.fail(field.Position, "%s", message)
			return o
		}
	}
	if o.Files == nil && len(r.wrong) == before {
		r.fail(v.Position, "an element of overrides needs files: for all files write rules at the top of xdspub.yaml")
	}
	if o.Levels == nil && len(r.wrong) == before {
		r.fail(v.Position, "an element of overrides needs rules")
	}
	return o
}

// patterns reads the globs of files.
func (r *severityReader) patterns(v load.SettingValue) []string {
	patterns, ok := v.Texts()
	if !ok || len(patterns) == 0 {
		r.fail(v.Position, "files is a glob pattern, or a list of them")
	}
	for i, pattern := range patterns {
		at := v.Position
		if v.Kind == load.SettingList {
			at = v.Parts[i].Position
		}
		below := strings.Trim(pattern, "/") // as it is matched
		switch _, err := path.Match(below, ""); {
		case err != nil || below == "":
			r.fail(at, "invalid files %q: write a glob pattern such as old.yaml or old/*", pattern)
		case path.Clean(below) != below || below == ".." || strings.HasPrefix(below, "../"):
			r.fail(at, "invalid files %q: it matches nothing, since it is compared with paths below the source tree, which have no . and no ..", pattern)
		}
	}
	return patterns
}

// levels reads severities of rules. everywhere says that they are for all files.
func (r *severityReader) levels(v load.SettingValue, at diag.Position, everywhere bool) levels {
	if v.Kind != load.SettingMapping {
		r.fail(at, "rules has one rule a line, such as weight-sum: warning")
		return nil
	}
	all := make(levels)
	for _, rule := range v.Parts {
		if wrong := wrongRule(rule.Key); wrong != "" {
			r.fail(rule.Position, "invalid rule %q: %s", rule.Key, wrong)
			continue
		}
		if rule.Kind != load.SettingText {
			r.fail(rule.Position, "%s is one of error, warning, info, on and off", rule.Key)
			continue
		}
		level, err := policy.ParseLevel(rule.Text)
		if err != nil {
			r.fail(rule.Position, "invalid %s %q: %s", rule.Key, rule.Text, oneOf(policy.Levels, rule.Text))
			continue
		}
		if aboutChange := slices.Contains(diag.Names(codes.Changes()), rule.Key); aboutChange && (!everywhere || level != policy.Kept && level != policy.Dropped) {
			r.fail(rule.Position, "%s is about a change of what is published: it is on or off, for all files", rule.Key)
			continue
		}
		all[rule.Key] = level
	}
	return all
}
