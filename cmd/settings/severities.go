package settings

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"xdspub/check/policy"
	"xdspub/cmd/codes"
	"xdspub/diag"
	"xdspub/source/settingsfile"
)

// The sections about severities of rules: rulesSection for all files, overridesSection for some.
const (
	rulesSection     = "rules"
	overridesSection = "overrides"
)

// Levels are severities of rules, by code.
type Levels = map[string]policy.Level

func (r *fileReader) readSeverities(in settingsfile.Setting) {
	r.settings.Severities = Value[Levels]{Value: r.levels(in.Value, in.ValueAt, true), Origin: Origin{name: in.Key, file: &in}}
}

func (r *fileReader) readOverrides(in settingsfile.Setting) {
	if in.Kind != settingsfile.List {
		r.fail(in.Position, "overrides is a list: write an element with files and rules for each group of files")
	}
	var all policy.Overrides
	for _, part := range in.Parts {
		all = append(all, r.override(part))
	}
	r.settings.Overrides = Value[policy.Overrides]{Value: all, Origin: Origin{name: in.Key, file: &in}}
}

// override reads an element of overrides.
func (r *fileReader) override(v settingsfile.Value) (o policy.Override) {
	if v.Kind != settingsfile.Mapping {
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
			r.fail(field.Position, "%s", unknownKey(field.Key, "in overrides", []string{"files", "rules"}, "files and rules"))
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
func (r *fileReader) patterns(v settingsfile.Value) []string {
	patterns, ok := v.Texts()
	if !ok || len(patterns) == 0 {
		r.fail(v.Position, "files is a glob pattern, or a list of them")
	}
	for i, pattern := range patterns {
		at := v.Position
		if v.Kind == settingsfile.List {
			at = v.Parts[i].Position
		}
		below := strings.Trim(pattern, "/") // as path.Match gets it
		switch _, err := path.Match(below, ""); {
		case err != nil || below == "":
			r.fail(at, "invalid files %q: write a glob pattern such as old.yaml or old/*", pattern)
		case path.Clean(below) != below || below == ".." || strings.HasPrefix(below, "../"):
			r.fail(at, "invalid files %q: it matches nothing, since it is compared with paths below the source tree, which have no . and no ..", pattern)
		}
	}
	return patterns
}

// levels reads severities of rules. everywhere means that they apply to all files.
func (r *fileReader) levels(v settingsfile.Value, at diag.Position, everywhere bool) Levels {
	if v.Kind != settingsfile.Mapping {
		r.fail(at, "rules has one rule a line, such as weight-sum: warning")
		return nil
	}
	all := make(Levels)
	for _, rule := range v.Parts {
		if wrong := WrongRule(rule.Key); wrong != "" {
			r.fail(rule.Position, "invalid rule %q: %s", rule.Key, wrong)
			continue
		}
		if rule.Kind != settingsfile.Text {
			r.fail(rule.Position, "%s is one of error, warning, info, on and off", rule.Key)
			continue
		}
		level, err := policy.ParseLevel(rule.Text)
		if err != nil {
			r.fail(rule.Position, "invalid %s %q: %s", rule.Key, rule.Text, OneOf(policy.Levels, rule.Text))
			continue
		}
		if aboutChange := slices.Contains(diag.Names(codes.Changes()), rule.Key); aboutChange &&
			(!everywhere || level != policy.Kept && level != policy.Dropped) {
			r.fail(rule.Position, "%s judges a change of the published files: write on or off, at the top of xdspub.yaml", rule.Key)
			continue
		}
		all[rule.Key] = level
	}
	return all
}

// WrongRule returns why a name is not the name of a rule that can be turned off; empty if it is.
func WrongRule(name string) string {
	rules := diag.Names(codes.Rules())
	switch meant := NearestRule(rules, name); {
	case slices.Contains(rules, name):
		return ""
	case slices.Contains(diag.Names(codes.All()), name):
		return "this finding can't be turned off, since xdspub can't read the file"
	case meant != "":
		return fmt.Sprintf("did you mean %s?", meant)
	}
	return "run xdspub rules for a list"
}

// NearestRule is Nearest for names of rules. NearestRule returns a sub-code only if word has a slash.
func NearestRule(names []string, word string) string {
	if !strings.Contains(word, "/") {
		names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return strings.Contains(name, "/") })
	}
	return Nearest(names, word)
}
