// Package policy applies the severities that the settings of a source tree give to rules, for all files or for
// some files.
//
//	overrides := policy.Overrides{
//		{Levels: map[string]policy.Level{"weight-sum": policy.Dropped}},
//		{Files: []string{"legacy/*"}, Levels: map[string]policy.Level{"name-missing": policy.At(diag.Warning)}},
//	}
//	findings = overrides.Apply(findings, "config")
package policy

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"xdspub/diag"
	"xdspub/internal/fspath"
)

// Level is the severity that a user sets for the findings of a rule. The zero Level leaves findings unchanged.
type Level struct {
	off   bool
	fixed bool
	at    diag.Severity
}

// Kept leaves findings unchanged, Dropped removes findings.
var (
	Kept    = Level{}
	Dropped = Level{off: true}
)

// At returns the Level that gives all findings the severity s.
func At(s diag.Severity) Level { return Level{fixed: true, at: s} }

// Levels are the words for a Level.
var Levels = []string{diag.Error.String(), diag.Warning.String(), diag.Info.String(), "on", "off"}

// ParseLevel reads one of Levels. It also reads true and false, which are on and off in YAML.
func ParseLevel(word string) (Level, error) {
	switch word {
	case "on", "true":
		return Kept, nil
	case "off", "false":
		return Dropped, nil
	}
	var s diag.Severity
	if err := s.UnmarshalText([]byte(word)); err != nil {
		return Kept, fmt.Errorf("%q is none of error, warning, info, on and off", word)
	}
	return At(s), nil
}

// Override sets the Level of some rules.
type Override struct {
	// Files are glob patterns of files, by their paths below the source tree, as fspath.Matches reads patterns. The
	// override concerns findings in these files. Nil means all findings.
	Files []string
	// Levels maps the code of a rule, or the sub-code of a check, to its Level.
	Levels map[string]Level
}

// Overrides are several overrides. If two of them concern a finding, the later one wins. An Override of the
// sub-code wins over each Override of the code.
type Overrides []Override

// level returns the Level of a code in a file. below is the path of the file below the source tree.
func (o Overrides) level(code, below string) Level {
	for name := range diag.Selectors(code) {
		for _, override := range slices.Backward(o) {
			if level, ok := override.Levels[name]; ok && override.covers(below) {
				return level
			}
		}
	}
	return Kept
}

// covers reports whether the override concerns findings in a file. below is "" for a finding without a file.
func (o *Override) covers(below string) bool {
	if o.Files == nil {
		return true
	}
	return below != "" && slices.ContainsFunc(o.Files, func(pattern string) bool { return fspath.Matches(pattern, below) })
}

// Disabled returns the sorted codes that are off for all findings.
func (o Overrides) Disabled() (codes []string) {
	for code := range o.codes() {
		if o.every(code, func(l Level) bool { return l == Dropped }) {
			codes = append(codes, code)
		}
	}
	slices.Sort(codes)
	return codes
}

// Enabled returns the sorted codes that are not off for all findings.
func (o Overrides) Enabled() (codes []string) {
	off := o.Disabled()
	for code := range o.codes() {
		if _, found := slices.BinarySearch(off, code); !found {
			codes = append(codes, code)
		}
	}
	slices.Sort(codes)
	return codes
}

// Lowered returns the sorted codes whose errors may have another severity, or be dropped, in some file.
func (o Overrides) Lowered() (codes []string) {
	for code := range o.codes() {
		if !o.every(code, func(l Level) bool { return l == Kept || l == At(diag.Error) }) {
			codes = append(codes, code)
		}
	}
	slices.Sort(codes)
	return codes
}

// codes returns all codes and sub-codes of the overrides.
func (o Overrides) codes() map[string]bool {
	codes := make(map[string]bool)
	for _, override := range o {
		for code := range maps.Keys(override.Levels) {
			codes[code] = true
		}
	}
	return codes
}

// every reports whether is returns true for the Level of a code in every file. every may return false without need:
// it does not know whether an override matches a file, or whether a later override wins.
func (o Overrides) every(code string, is func(Level) bool) bool {
	if !is(o.level(code, "")) {
		return false
	}
	for name := range diag.Selectors(code) {
		for _, override := range o {
			if level, ok := override.Levels[name]; ok && override.Files != nil && !is(level) {
				return false
			}
		}
		if slices.ContainsFunc(o, func(override Override) bool { _, ok := override.Levels[name]; return ok && override.Files == nil }) {
			break // for all files, the sub-code wins over the code
		}
	}
	return true
}

// Apply returns the findings of a list with their final severities, and without the findings that are off. root is
// the root of the source tree. Apply does not modify the list.
func (o Overrides) Apply(list diag.List, root string) diag.List {
	if len(o) == 0 || len(list) == 0 {
		return list
	}
	codes := o.codes()
	below := make(map[string]string)
	var applied diag.List
	for _, d := range list {
		if codes[d.Code] || codes[diag.CodeOf(d.Code)] {
			if _, known := below[d.File]; !known {
				below[d.File] = pathBelow(root, d.File)
			}
			level := o.level(d.Code, below[d.File])
			if level.off {
				continue
			}
			if level.fixed {
				if d.Severity == diag.Error && level.at != diag.Error {
					d = d.WithoutSafe() // the user accepts the text as it stands
				}
				d.Severity = level.at
			}
		}
		applied = append(applied, d)
	}
	return applied
}

// pathBelow returns the path of a file below a root, or "" if the file is not below the root.
func pathBelow(root, file string) string {
	root, err := filepath.Abs(root)
	if err != nil || file == "" {
		return ""
	}
	if file, err = filepath.Abs(file); err != nil {
		return ""
	}
	if file == root { // the source tree is one file
		return filepath.Base(file)
	}
	path, err := filepath.Rel(root, file)
	if err != nil || !filepath.IsLocal(path) {
		return ""
	}
	return path
}
