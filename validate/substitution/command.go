package substitution

import (
	"fmt"
	"strings"

	"xdspub/diag"
)

// command describes the syntax of a command.
type command struct {
	// plain means that the command takes neither an argument nor a length, needsArg that it needs an argument,
	// takesLength that it may have a length.
	plain, needsArg, takesLength bool
	// check checks the argument. A nil check accepts any argument.
	check func(call) *Fault
}

// parse returns the command that the words of Language.BuiltIn describe.
func parse(words []string) (cmd command, err error) {
	for _, word := range words {
		kind, lists, _ := strings.Cut(word, ":")
		switch kind {
		case "plain":
			cmd.plain = true
		case "argument":
			cmd.needsArg = true
		case "length":
			cmd.takesLength = true
		default:
			if cmd.check = check(kind, lists); cmd.check == nil {
				return cmd, fmt.Errorf("unknown word %q", word)
			}
		}
	}
	return cmd, nil
}

// check returns the function that checks an argument of a kind, or nil for an unknown kind. lists are the words
// that the argument may have, for kinds such as one-of.
func check(kind, lists string) func(call) *Fault {
	first, second, _ := strings.Cut(lists, ":")
	words := strings.Split(first, ",")
	switch kind {
	case "headers":
		return headers
	case "duration":
		return duration
	case "filter-state":
		return filterState
	case "time":
		return timeFormat
	case "mask":
		return maskLength
	case "cel":
		return celExpression
	case "coalesce":
		return coalesce
	case "one-of":
		return func(c call) *Fault { return option(c.arg, words) }
	case "options":
		return options(words, strings.Split(second, ","))
	case "metadata":
		return metadata(words)
	case "xfcc":
		return xfccKey(words)
	}
	return nil
}

// call is one use of a command in a format.
type call struct {
	name, arg string
	length    bool
	of        *Language
	x         Extensions
}

func (c call) check() *Fault {
	cmd, ok := c.of.lookup(c.name, c.x)
	switch {
	case !ok && c.x.Unknown:
		return nil
	case !ok:
		return c.of.unknown(c.name)
	case cmd.plain && (c.arg != "" || c.length):
		return &Fault{Message: "the command supports neither an argument nor a length", Help: "write %" + c.name + "%"}
	case cmd.needsArg && c.arg == "":
		return &Fault{Message: "the command needs an argument", Help: "write %" + c.name + "(…)%"}
	case !cmd.plain && !cmd.takesLength && c.length:
		return &Fault{Message: "the command does not support a length", Help: "remove the :LENGTH"}
	case cmd.check != nil:
		return cmd.check(c)
	}
	return nil
}

func (l *Language) lookup(name string, x Extensions) (command, bool) {
	switch {
	case x.Generic && l.Generic[name]:
		return command{takesLength: true}, true
	case name == "REQ_WITHOUT_QUERY" && x.RequestWithoutQuery:
		return command{takesLength: true, check: headers}, true
	case name == "FILE_CONTENT" && x.FileContent:
		return command{takesLength: true, check: fileContent}, true
	case name == "SECRET" && x.Secrets != nil:
		return command{takesLength: true, check: secret}, true
	case (name == "REQUEST_BODY" || name == "RESPONSE_BODY") && x.Bodies:
		return command{takesLength: true}, true
	}
	words, ok := l.BuiltIn[name]
	cmd, _ := parse(words) // a test parses the words of all commands
	return cmd, ok
}

// needs maps a command to the formatter that adds the command.
var needs = map[string]string{
	"FILE_CONTENT":      "envoy.formatter.file_content",
	"REQ_WITHOUT_QUERY": "envoy.formatter.req_without_query",
	"SECRET":            "envoy.formatter.generic_secret",
}

func (l *Language) unknown(name string) *Fault {
	f := &Fault{Message: "unknown command"}
	if formatter, ok := needs[name]; ok {
		f.Help = "list " + formatter + " in the formatters beside the format"
	} else if since, ok := l.Newer[name]; ok {
		f.Help = "it came with Envoy " + since
	} else if near := l.Names.Nearest(name); near != "" {
		f.Help, f.Correction = "did you mean %"+near+"%?", diag.Correction{Wrong: "%" + name, Right: "%" + near, Sure: l.Names.Misspelt(name, near, nil)}
	}
	return f
}
