// Package substitution checks the format strings of Envoy, which stand in access logs, in headers to add, in
// bodies and in rewrites:
//
//	[%START_TIME%] "%REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH):80%" %RESPONSE_CODE%
//
// A command is %NAME%, %NAME(argument)% or %NAME(argument):LENGTH%, and %% is a percent sign. A Language has
// the commands of a release of Envoy. Language.Check finds the faults for which this release refuses a format.
// testdata/envoy.txt records the verdicts of Envoy 1.40.0 on a list of formats.
//
// Faults quote only commands: the text between commands may be a password in a header.
package substitution

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"xdspub/diag"
	"xdspub/validate/cel"
)

// Fault is a fault of a format.
type Fault struct {
	// Message names the fault, Help the remedy.
	Message, Help string
	// Correction replaces the command if another command was likely meant.
	Correction diag.Correction
	// Taken means that Envoy accepts the format. The format is obsolete, or its effect is not what users expect.
	Taken bool
	// Crash means that the command crashes Envoy.
	Crash bool
}

// Extensions are the commands that formatters, configured beside a format, add to the built-in commands. The
// zero value adds none.
type Extensions struct {
	// Unknown permits any command.
	Unknown bool
	// RequestWithoutQuery permits %REQ_WITHOUT_QUERY(x?y)%, FileContent permits %FILE_CONTENT(path)%.
	RequestWithoutQuery, FileContent bool
	// Secrets are the names that %SECRET(name)% may use; nil forbids the command.
	Secrets []string
	// Bodies permits %REQUEST_BODY(key)% and %RESPONSE_BODY(key)% of the transform filter.
	Bodies bool
	// Generic permits the commands of the access logs of generic_proxy. Such a command accepts any argument
	// and length, even if a built-in command has the same name.
	Generic bool
	// CEL has the options of the expressions in %CEL(…)%. The functions are those of the Language.
	CEL cel.Options
	// NoCEL means that a worker thread of Envoy parses the format. %CEL(…)% crashes Envoy then.
	NoCEL bool
}

// Language is the language of format strings of a release of Envoy.
type Language struct {
	// BuiltIn maps a command to words that describe its syntax. A plain command takes neither argument nor
	// length. A command with "argument" needs an argument, a command with "length" takes a length. Any further
	// word is the kind of the argument, such as headers or one-of:A,B; without a kind, the command takes any
	// argument.
	BuiltIn map[string][]string
	// Names are the names in BuiltIn.
	Names *diag.Candidates
	// Newer maps a command of a later release of Envoy to the release.
	Newer map[string]string
	// Generic are the commands that generic_proxy adds to its access logs.
	Generic map[string]bool
	// Functions are the functions of expressions in %CEL(…)%.
	Functions cel.Functions
}

// Check returns the faults of a format, in the order of the text.
func (l *Language) Check(format string, x Extensions) []Fault { return l.parse(format, x).faults }

// Parts returns the number of commands and of texts around commands in a format. Counting ends at a percent sign
// that begins no command.
func (l *Language) Parts(format string, x Extensions) int { return l.parse(format, x).parts }

// commandForm is Envoy's own expression for a command.
var commandForm = regexp.MustCompile(`^%([A-Z0-9_]+)(?:\((.*?)\))?(?::([0-9]+))?%`)

type parsed struct {
	faults []Fault
	parts  int
}

func (l *Language) parse(format string, x Extensions) (p parsed) {
	text := false
	for at := 0; at < len(format); {
		switch {
		case format[at] != '%':
			text = true
			at++
			continue
		case strings.HasPrefix(format[at:], "%%"):
			text = true
			at += 2
			continue
		}
		m := commandForm.FindStringSubmatchIndex(format[at:])
		if m == nil || !utf8.ValidString(format[at:at+m[1]]) || !isLength(group(format[at:], m, 3)) {
			p.faults = append(p.faults, unfinished(format, at))
			return p
		}
		if text {
			p.parts++
		}
		p.parts++
		text = false
		c := call{
			name: group(format[at:], m, 1), arg: group(format[at:], m, 2), length: group(format[at:], m, 3) != "", of: l, x: x,
		}
		if f := c.check(); f != nil {
			f.Message = fmt.Sprintf("%s: %s", format[at:at+m[1]], f.Message)
			p.faults = append(p.faults, *f)
		}
		at += m[1]
	}
	if text {
		p.parts++
	}
	return p
}

// group returns group n of a match, or "" if the match does not include the group.
func group(s string, m []int, n int) string {
	if m[2*n] < 0 {
		return ""
	}
	return s[m[2*n]:m[2*n+1]]
}

func isLength(digits string) bool {
	_, err := strconv.ParseUint(digits, 10, 64)
	return digits == "" || err == nil
}

var nameForm = regexp.MustCompile(`^%[A-Z0-9_]+`)

// unfinished returns the fault of a percent sign that begins no command. The message does not quote the text after
// the percent sign, because this text may be secret.
func unfinished(format string, at int) Fault {
	name := nameForm.FindString(format[at:])
	rest := format[at+len(name):]
	place := fmt.Sprintf("at character %d", utf8.RuneCountInString(format[:at])+1)
	f := Fault{Help: "write a command as %NAME%, %NAME(argument)% or %NAME(argument):LENGTH%, and %% for a percent sign"}
	switch {
	case name == "":
		f.Message = "the % " + place + " does not begin a command"
	case strings.HasPrefix(rest, "(") && !strings.Contains(firstLine(rest), ")"):
		f.Message = fmt.Sprintf("the argument of %s %s is not closed with )", name, place)
	case strings.HasPrefix(rest, "("):
		f.Message = fmt.Sprintf("the argument of %s %s is not followed by %% or :LENGTH%%", name, place)
	case strings.HasPrefix(rest, ":"):
		f.Message = fmt.Sprintf("the length after %s %s is not a number followed by %%", name, place)
	default:
		f.Message = fmt.Sprintf("%s %s is not closed with %%", name, place)
	}
	return f
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
