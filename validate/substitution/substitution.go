// Package substitution knows the format strings of Envoy: what stands in access logs, in headers to add, in bodies and in rewrites as
//
//	[%START_TIME%] "%REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH):80%" %RESPONSE_CODE%
//
// A command is %NAME%, %NAME(argument)% or %NAME(argument):LENGTH%, and %% is a
// percent sign. A Language has the commands of a version of Envoy, and its Check finds what that
// refuses to load. testdata/envoy.txt holds what Envoy 1.40.0 said to a list of formats.
//
// Of a format only its commands are ever told: what stands between them may be a
// password in a header.
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

// Fault is something wrong in a format.
type Fault struct {
	// Message says what, Help what would be right.
	Message, Help string
	// Correction is of the command, where another one is likely meant.
	Correction diag.Correction
	// Taken tells that Envoy loads the format nevertheless, and reads it in another
	// way than it looks, or does so for old configurations only.
	Taken bool
	// Crash tells that Envoy ends when it comes to the command.
	Crash bool
}

// Extensions are what formatters, configured beside a format, add to the built-in
// commands. The zero value is none.
type Extensions struct {
	// Unknown says that there may be any command.
	Unknown bool
	// RequestWithoutQuery is %REQ_WITHOUT_QUERY(x?y)%, FileContent
	// %FILE_CONTENT(path)%.
	RequestWithoutQuery, FileContent bool
	// Secrets are the names for %SECRET(name)%; nil means that there is no such
	// command.
	Secrets []string
	// Bodies are %REQUEST_BODY(key)% and %RESPONSE_BODY(key)%, of the transform
	// filter.
	Bodies bool
	// Generic are the commands of the access logs of generic_proxy. They take any
	// argument and length, also those that have the name of another command.
	Generic bool
	// CEL is for the expressions in %CEL(…)%; the functions are the Language's.
	CEL cel.Options
	// NoCEL says that the format is read by Envoy's worker threads, which have no
	// CEL.
	NoCEL bool
}

// Language is what a version of Envoy has for format strings.
type Language struct {
	// BuiltIn are its commands by their names, and for each the words that say what it takes.
	// A plain one takes neither an argument nor a length. With argument it needs one, with
	// length it takes one; a further word is the kind of argument, such as headers or
	// one-of:A,B. Without that, any argument will do.
	BuiltIn map[string][]string
	// Names are those of BuiltIn.
	Names *diag.Candidates
	// Newer are commands that later versions have, with the release that brought each.
	Newer map[string]string
	// Generic are the commands that generic_proxy brings for its access logs.
	Generic map[string]bool
	// Functions are for the expressions in %CEL(…)%.
	Functions cel.Functions
}

// Check returns what is wrong with a format, in the order of the text.
func (l *Language) Check(format string, x Extensions) []Fault { return l.parse(format, x).faults }

// Parts counts the commands and the stretches of text between them.
func (l *Language) Parts(format string, x Extensions) int { return l.parse(format, x).parts }

// commandForm is the expression that Envoy takes a command with.
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

// group is a group of a match, "" if it took no part.
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

// unfinished says why no command starts at a percent sign. What follows is not
// told, it may be text.
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
