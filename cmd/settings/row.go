package settings

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"xdspub/diag"
	"xdspub/source/settingsfile"
)

// Row is a row of the table of settings. The flag, the variable, the value in a settings file, the help, the
// completion and the schema of a setting follow from its row.
type Row interface {
	// Name returns the name of the option without dashes, which is also the name in a settings file.
	Name() string
	// Names returns the name and, if the option has one, its letter.
	Names() []string
	// Group returns the title above the option in the help.
	Group() string
	// Usage describes the setting. The word in backquotes is the placeholder of the value.
	Usage() string
	// Variable returns the name of the environment variable; empty if there is none.
	Variable() string
	// Outside reports whether the setting makes xdspub read, ask or write something outside of the source tree.
	// The settings file of the tree must not have such a setting.
	Outside() bool
	// Codes returns the rules that the value can name; nil if the value is something else.
	Codes() []diag.Code
	// TakesValue reports whether the option needs a value. Switches need none.
	TakesValue() bool
	// IsTime reports whether the value is a time.
	IsTime() bool
	// Repeats reports whether the option may be repeated.
	Repeats() bool
	// IsPath reports whether the value is a single path.
	IsPath() bool
	// Kind names the type of the value: text, number, time, path, list, or true or false.
	Kind() string
	// Default returns the text of the default; empty for none.
	Default() string
	// SchemaDefault returns the default in the schema of settings files; nil for none.
	SchemaDefault() any
	// Parse returns an error if text is not a value of the setting. The error says what to write instead.
	Parse(text string) error
	// Origin returns where the value comes from.
	Origin(*Settings) Origin
	// Texts returns the value as texts, for comparison with the value in another process.
	Texts(*Settings) []string
	// Same reports whether a and b have equal values. A value from a settings file is never the same as a value
	// from elsewhere.
	Same(a, b *Settings) bool

	fill(s *Settings, given []string) error
	readFile(s *Settings, in settingsfile.Setting, from file) error
	take(to, from *Settings)
	check(*Settings) error
	checkGiven(*Settings) error
	schema() Schema
	served() Row
	isForClients() bool
}

// about is the part of a row that does not depend on the type of the value.
type about struct {
	name, short string
	group       string
	usage       string
	defaultText string // text of the default in the help; empty for the value itself
	noVariable  bool
	outside     bool
	codes       func() []diag.Code
	// forClients means that the setting is about clients of serve too, not only about published files.
	forClients bool
	// servedUsage and servedDefault are usage and defaultText in the help of serve; empty if they are the same.
	servedUsage, servedDefault string
}

func (a *about) Name() string  { return a.name }
func (a *about) Group() string { return a.group }
func (a *about) Usage() string { return a.usage }
func (a *about) Outside() bool { return a.outside }

func (a *about) isForClients() bool { return a.forClients }

func (a *about) Names() []string {
	if a.short == "" {
		return []string{a.name}
	}
	return []string{a.name, a.short}
}

func (a *about) Variable() string {
	if a.noVariable {
		return ""
	}
	return variableOf(a.name)
}

func (a *about) Codes() []diag.Code {
	if a.codes == nil {
		return nil
	}
	return a.codes()
}

// setting is a Row for values of a type.
type setting[T any] struct {
	about
	kind      kind[T]
	byDefault T
	// law returns the remedy for a bad value, or "" for a good one. A nil law accepts every value.
	law func(T) string
	// now means that New checks a given value by law. Otherwise the command checks the value, by Check.
	// complain makes the error of New; nil means Origin.Invalid.
	now      bool
	complain func(v T, wants string) error
	// form returns the schema of the value, or of an element of a list; nil means kind.form.
	form func() Schema
	into func(*Settings) *Value[T]
}

func (r *setting[T]) TakesValue() bool { return r.kind.name != boolean.name }
func (r *setting[T]) Repeats() bool    { return r.kind.repeats }
func (r *setting[T]) IsPath() bool     { return r.kind.name == filePath.name }
func (r *setting[T]) IsTime() bool     { return r.kind.name == times.name }
func (r *setting[T]) Kind() string     { return r.kind.name }

func (r *setting[T]) Default() string {
	if r.defaultText != "" {
		return r.defaultText
	}
	return r.kind.text(r.byDefault)
}

func (r *setting[T]) Parse(text string) error {
	_, err := r.kind.parse([]string{text})
	return err
}

func (r *setting[T]) Origin(s *Settings) Origin { return r.into(s).Origin }

func (r *setting[T]) Texts(s *Settings) []string { return r.kind.compared(r.into(s).Value) }

func (r *setting[T]) Same(a, b *Settings) bool {
	x, y := r.into(a), r.into(b)
	return x.InFile() == y.InFile() && reflect.DeepEqual(x.Value, y.Value)
}

// fill sets the value from the texts that the command line gives, otherwise from the variable, otherwise to the
// default. A variable with an invalid text is an error even if the command line gives the option.
func (r *setting[T]) fill(s *Settings, given []string) error {
	v := Value[T]{r.byDefault, Origin{name: r.name, line: len(given) > 0}, r}
	texts := given
	if name := r.Variable(); name != "" && os.Getenv(name) != "" {
		v.variable = name
		if _, err := r.kind.parse([]string{os.Getenv(name)}); err != nil {
			return usagef("invalid %s %q: %w", name, os.Getenv(name), err)
		}
		if !v.line {
			texts = []string{os.Getenv(name)}
		}
	}
	if len(texts) > 0 {
		var err error
		if v.Value, err = r.kind.parse(texts); err != nil {
			return v.Invalid(texts[len(texts)-1], err.Error())
		}
	}
	*r.into(s) = v
	return nil
}

// readFile sets the value from a settings file, unless the command line or the environment gives the setting.
// readFile checks the form of the value in any case.
func (r *setting[T]) readFile(s *Settings, in settingsfile.Setting, from file) error {
	v, err := r.inFile(in, from.dir)
	if err != nil {
		return err
	}
	if r.outside && from.ofTree {
		return fmt.Errorf("%s can't be set in the source tree: whoever changes the tree must not decide what is read or written "+
			"outside of it; use --%[1]s, %s, or --config %s", r.name, variableOf(r.name), from.name)
	}
	into := r.into(s)
	if into.Given() {
		return nil
	}
	if wants := r.wants(v); wants != "" {
		texts, _ := in.Texts()
		return fmt.Errorf("invalid %s %q: %s", r.name, texts[0], wants)
	}
	*into = Value[T]{v, Origin{name: r.name, file: &in}, r}
	return nil
}

// inFile returns the value of a setting in a settings file in the folder dir.
func (r *setting[T]) inFile(in settingsfile.Setting, dir string) (v T, err error) {
	texts, ok := in.Texts()
	switch {
	case !ok:
		return v, fmt.Errorf("%s: %w", r.name, settingsfile.ErrForm)
	case r.kind.ofList != nil:
		return r.kind.ofList(dir, texts), nil
	case len(texts) != 1:
		return v, fmt.Errorf("%s takes one value, and this is a list of %d", r.name, len(texts))
	}
	if v, err = r.kind.parse(texts); err != nil {
		return v, fmt.Errorf("invalid %s %q: %w", r.name, texts[0], err)
	}
	if r.kind.below != nil {
		v = r.kind.below(dir, v)
	}
	return v, nil
}

// take copies the value of from to to, if the value of from comes from a settings file, and the command line
// and the environment of to do not give the setting.
func (r *setting[T]) take(to, from *Settings) {
	if is := r.into(from); is.InFile() && !r.into(to).Given() {
		*r.into(to) = *is
	}
}

func (r *setting[T]) wants(v T) string {
	if r.law == nil {
		return ""
	}
	return r.law(v)
}

func (r *setting[T]) check(s *Settings) error { return r.into(s).Check() }

func (r *setting[T]) checkGiven(s *Settings) error {
	v := r.into(s)
	if !r.now || !v.Given() {
		return nil
	}
	if wants := r.wants(v.Value); wants != "" && r.complain != nil {
		return r.complain(v.Value, wants)
	}
	return v.Check()
}

func (r *setting[T]) served() Row {
	of := *r
	if of.servedUsage != "" {
		of.usage = of.servedUsage
	}
	if of.servedDefault != "" {
		of.defaultText = of.servedDefault
	}
	return &of
}

// Placeholder returns the word in backquotes of a usage, such as FILE or a|b|c; empty for a switch.
func Placeholder(usage string) string {
	_, rest, _ := strings.Cut(usage, "`")
	name, _, _ := strings.Cut(rest, "`")
	return name
}

// Choices returns the words of a placeholder such as any|all|N, without words in capitals such as N. Choices
// returns nil for a single word.
func Choices(placeholder string) []string {
	words := strings.Split(placeholder, "|")
	if len(words) == 1 {
		return nil
	}
	return slices.DeleteFunc(words, func(word string) bool { return word != strings.ToLower(word) || word == "-" })
}

// Names returns the names of rows.
func Names(rows []Row) (names []string) {
	for _, r := range rows {
		names = append(names, r.Name())
	}
	return names
}

// FirstGiven returns the name of the first row that the command line or the environment gives; empty for none.
func FirstGiven(s *Settings, rows []Row) string {
	for _, r := range rows {
		if r.Origin(s).Given() {
			return r.Name()
		}
	}
	return ""
}

// VariablePrefix begins the name of each variable.
const VariablePrefix = "XDSPUB_"

// variableOf returns the environment variable of a setting: XDSPUB_<NAME>.
func variableOf(name string) string {
	return VariablePrefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}
