package settings

import (
	"fmt"
	"slices"

	"xdspub/diag"
	"xdspub/source/settingsfile"
)

// Value is the value of a setting with its Origin.
type Value[T any] struct {
	Value T
	Origin
	row *setting[T]
}

// Check returns a *UsageError if the value is not allowed. The zero Value is allowed.
func (v Value[T]) Check() error {
	if v.row == nil {
		return nil
	}
	if wants := v.row.wants(v.Value); wants != "" {
		return v.Invalid(v.row.kind.text(v.Value), wants)
	}
	return nil
}

// Origin says where the value of a setting comes from: the command line, a variable, a settings file or the default.
type Origin struct {
	name     string
	line     bool                  // the command line has the option
	variable string                // the name of the variable; empty if unset
	file     *settingsfile.Setting // nil if no settings file has the value
}

// Given reports whether the command line or the environment has the setting. A settings file does not count.
func (o Origin) Given() bool { return o.line || o.variable != "" }

// Name returns the name of the option.
func (o Origin) Name() string { return o.name }

// Of reports whether an option of the command line is this setting.
func (o Origin) Of(g Given) bool { return g.Row.Name() == o.name }

// OnlyOnLine reports whether the command line, but not the environment, has the setting.
func (o Origin) OnlyOnLine() bool { return o.line && o.variable == "" }

// InFile reports whether the value is that of a settings file.
func (o Origin) InFile() bool { return o.file != nil }

// Position returns where the setting stands in the settings file; zero if the value is not from a file.
func (o Origin) Position() diag.Position {
	if o.file == nil {
		return diag.Position{}
	}
	return o.file.Position
}

// Places returns where the elements of a list stand in the settings file; nil if the value is not from a file.
func (o Origin) Places() []diag.Position {
	if o.file == nil {
		return nil
	}
	return o.file.Places()
}

// Invalid returns a *UsageError for a text that the setting does not accept. wants says what to write instead.
func (o Origin) Invalid(text, wants string) error {
	switch {
	case o.file != nil:
		at := o.file.Position
		if i := slices.IndexFunc(o.file.Parts, func(item settingsfile.Value) bool { return item.Text == text }); i >= 0 {
			at = o.file.Parts[i].Position
		}
		return usagef("%s: invalid %s %q: %s", at, o.name, text, wants)
	case o.variable != "" && !o.line:
		return usagef("invalid %s %q: %s", o.variable, text, wants)
	}
	return usagef("invalid --%s %q: %s", o.name, text, wants)
}

// UsageError is an error of the user of a command: in an option, a variable or a settings file.
type UsageError struct{ err error }

func (e *UsageError) Error() string { return e.err.Error() }

// Unwrap returns the error without its type.
func (e *UsageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &UsageError{fmt.Errorf(format, args...)} }
