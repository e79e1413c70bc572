package envoyapi

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
)

// RetryReasons returns the words that Envoy knows in retry_on.
func (v *Version) RetryReasons() []string { return v.tables().retryReasons }

// LuaModules returns the modules that Envoy's LuaJIT has built in.
func (v *Version) LuaModules() []string { return v.tables().luaModules }

// FormatFields returns the text fields of a message that Envoy reads as format strings.
func (v *Version) FormatFields(message protoreflect.FullName) []protoreflect.Name {
	return v.tables().formatFields[message]
}

// IsFormattedHeader reports whether Envoy reads the values of the headers in a field as format strings.
func (v *Version) IsFormattedHeader(field protoreflect.FullName) bool {
	return v.tables().formatHeaders[field]
}

// EagerGRPCServices returns the messages with a gRPC service whose client Envoy makes when it loads the message, or
// later, and then crashes if it can't.
func (v *Version) EagerGRPCServices() []protoreflect.FullName { return v.tables().eagerServices }

// FormatCommands are the commands of format strings.
type FormatCommands struct {
	// BuiltIn maps a command to the words that describe its syntax (format-commands.txt).
	BuiltIn map[string][]string
	// Names are the names in BuiltIn.
	Names *diag.Candidates
	// Newer maps a command that later releases have to the first of these releases.
	Newer map[string]string
	// Generic are the commands that generic_proxy adds for its access logs.
	Generic map[string]bool
}

// FormatCommands returns the commands that Envoy knows without further formatters.
func (v *Version) FormatCommands() FormatCommands { return v.tables().formatCommands }

func (r *reader) formatCommands(builtIn, generic string) FormatCommands {
	c := FormatCommands{BuiltIn: make(map[string][]string), Newer: r.newer(builtIn), Generic: make(map[string]bool)}
	for _, words := range r.rows(builtIn, 1) {
		c.BuiltIn[words[0]] = words[1:]
	}
	c.Names = diag.NewCandidates(slices.Sorted(maps.Keys(c.BuiltIn)))
	for _, name := range list[string](r, generic) {
		c.Generic[name] = true
	}
	return c
}

// CELFunctions are the functions of CEL and its syntax. A function may have several numbers of arguments.
type CELFunctions struct {
	// Global has the functions that are called as f(x). Receiver has the functions that are called as x.f(y); x
	// does not count as an argument.
	Global, Receiver map[string][]int
	// StringGlobal and StringReceiver have the functions that enable_string_functions adds.
	StringGlobal, StringReceiver map[string][]int
	// QuotedFields means that an expression may have field names in backquotes.
	QuotedFields bool
}

// CELFunctions returns the functions and the syntax of Envoy's CEL.
func (v *Version) CELFunctions() CELFunctions { return v.tables().celFunctions }

func (r *reader) celFunctions(file string) CELFunctions {
	quoted := false
	byKind := map[string]map[string][]int{"global": {}, "receiver": {}, "string-global": {}, "string-receiver": {}}
	for _, words := range r.rows(file, 2) {
		if words.String() == "syntax quoted-fields" {
			quoted = true
			continue
		}
		functions, known := byKind[words[0]]
		if !known {
			r.fail(fmt.Errorf("%s: unknown word %q", file, words[0]))
			continue
		}
		for _, word := range words[2:] {
			n, err := strconv.Atoi(word)
			if err != nil {
				r.fail(fmt.Errorf("%s: %s: %w", file, words[1], err))
			}
			functions[words[1]] = append(functions[words[1]], n)
		}
	}
	return CELFunctions{byKind["global"], byKind["receiver"], byKind["string-global"], byKind["string-receiver"], quoted}
}
