package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"xdspub/diag"
)

// givenFlag is a flag of the command line with its value.
type givenFlag struct{ name, value string }

// givenFlags is the key under which the metadata of an app have all given flags of the command in
// their order: the library tells only that of each flag's own values.
const givenFlags = "flags"

// flagsFirst moves flags before arguments, and looks at each flag and each variable of the
// command. The library stops at the first argument and would take every flag behind it for one
// more; the command line allows both orders.
func flagsFirst(app *cli.App, args []string) ([]string, error) {
	commands, at := app.Commands, 1
	var command *cli.Command
	for at < len(args) {
		next := find(commands, args[at])
		if next == nil {
			break
		}
		command, commands = next, next.Subcommands
		at++
	}
	if command == nil && len(args) > 1 && isFlag(args[1]) {
		return args, checkGlobalFlag(app, args[1])
	}
	if command == nil || len(command.Subcommands) > 0 {
		return args, nil
	}
	see := helpFor(strings.Join(args[1:at], " "))
	flags, rest := args[:at:at], []string(nil)
	var inOrder []givenFlag
	for i := at; i < len(args); i++ {
		arg := args[i]
		f := findFlag(command, arg)
		_, isBool := f.(*cli.BoolFlag)
		_, text, assigned := strings.Cut(arg, "=")
		switch {
		case arg == "--":
			rest = append(rest, args[i+1:]...)
			i = len(args)
			continue
		case !isFlag(arg):
			rest = append(rest, arg)
			continue
		case f == nil:
			return nil, unknownFlag(app, command, arg, see)
		case f == cli.HelpFlag:
			return append(flags, arg), nil // the library would ask for help on the arguments
		case isBool && !assigned:
			text = "true"
			flags = append(flags, arg)
		case assigned:
			flags = append(flags, arg)
		case i+1 == len(args) || args[i+1] == "--":
			return nil, usagef("%s needs a value: see %s", arg, see)
		case isFlag(args[i+1]) && findFlag(command, args[i+1]) != nil:
			// The library would take the flag for the value: with an empty variable
			// in a script, render --out $OUT --dry-run would write into ./--dry-run.
			return nil, usagef("%s needs a value, and %s is a flag: see %s", arg, args[i+1], see)
		default:
			i++
			text = args[i]
			flags = append(flags, arg, text)
		}
		if _, err := parse(f, text); err != nil {
			return nil, usagef("invalid --%s %q: %v", f.Names()[0], text, err)
		}
		inOrder = append(inOrder, givenFlag{f.Names()[0], text})
	}
	app.Metadata[givenFlags] = inOrder
	return append(append(flags, "--"), rest...), checkVariables(command)
}

// checkGlobalFlag returns an error where a flag before the command is none of the program's.
func checkGlobalFlag(app *cli.App, arg string) error {
	for _, f := range app.Flags {
		if slices.Contains(f.Names(), flagName(arg)) {
			return nil
		}
	}
	if of := commandsWith(app, arg); len(of) > 0 {
		return usagef("%s is an option of a command, and goes after it: write xdspub %s %s …", arg, of[0], arg)
	}
	if meant := nearest(flagNames(app.Flags), flagName(arg)); meant != "" {
		return usagef("unknown flag %s: did you mean --%s? see xdspub --help", arg, meant)
	}
	return usagef("unknown flag %s: see xdspub --help", arg)
}

// commandsWith returns the names of the commands that have a flag.
func commandsWith(app *cli.App, arg string) (names []string) {
	for _, c := range app.Commands {
		if f := findFlag(c, arg); f != nil && f != cli.HelpFlag {
			names = append(names, c.Name)
		}
	}
	return names
}

func isFlag(arg string) bool { return strings.HasPrefix(arg, "-") && arg != "-" }

func find(commands []*cli.Command, name string) *cli.Command {
	for _, c := range commands {
		if c.HasName(name) {
			return c
		}
	}
	return nil
}

// findFlag returns the flag of a command that arg names, or nil.
func findFlag(c *cli.Command, arg string) cli.Flag {
	name := flagName(arg)
	for _, f := range append(slices.Clone(c.Flags), cli.HelpFlag) {
		if isFlag(arg) && slices.Contains(f.Names(), name) {
			return f
		}
	}
	return nil
}

func flagName(arg string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-"), "=")
	return name
}

// otherWords are what flags are called in other programs.
var otherWords = map[string][]string{
	"o": {"output", "out"}, "f": {"format", "config"}, "c": {"config"}, "n": {"dry-run"},
	"strict": {"warnings-as-errors"}, "werror": {"warnings-as-errors"}, "fail-on-warnings": {"warnings-as-errors"},
	"exclude": {"ignore"}, "skip": {"disable"}, "admin": {"envoy-admin"}, "silent": {"quiet"},
	"output-dir": {"out"}, "destination": {"out"}, "interval": {"rescan"}, "limit": {"max-findings"},
}

// flagNames returns the names of flags, without their aliases.
func flagNames(flags []cli.Flag) (names []string) {
	for _, f := range flags {
		names = append(names, f.Names()[0])
	}
	return names
}

// unknownFlag says that a command does not have a flag, and which one may have been meant.
func unknownFlag(app *cli.App, c *cli.Command, arg, see string) error {
	name := flagName(arg)
	names := flagNames(c.Flags)
	has := func(name string) bool { return slices.Contains(names, name) }
	meant := nearest(names, name)
	if i := slices.IndexFunc(otherWords[strings.ToLower(name)], has); i >= 0 {
		meant = otherWords[strings.ToLower(name)][i]
	}
	if meant != "" {
		return usagef("unknown flag %s: did you mean --%s? see %s", arg, meant, see)
	}
	if others := commandsWith(app, arg); len(name) > 1 && len(others) > 0 {
		return usagef("unknown flag %s: %s has no such flag, %s does: see %s", arg, c.Name, strings.Join(others, " and "), see)
	}
	return usagef("unknown flag %s: see %s", arg, see)
}

// unknownCommand says that there is no command of the last name, and which may have been meant.
func unknownCommand(commands []*cli.Command, names []string) error {
	var known []string
	for _, c := range commands {
		known = append(known, c.Names()...)
	}
	if meant := nearest(known, names[len(names)-1]); meant != "" {
		return usagef("unknown command %q: did you mean %s? see xdspub help", strings.Join(names, " "), meant)
	}
	return usagef("unknown command %q: see xdspub help", strings.Join(names, " "))
}

// nearest returns the one of names that a word was likely meant for, or "": one that differs by
// a letter or two, in capitals or in how its parts are joined, or the only one that it begins.
func nearest(names []string, word string) string {
	plain := strings.ReplaceAll(strings.ToLower(word), "_", "-")
	if slices.Contains(names, plain) {
		return plain
	}
	begun := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return len(plain) < 2 || !strings.HasPrefix(name, plain) })
	if len(begun) == 1 {
		return begun[0]
	}
	return diag.NewCandidates(names).Nearest(plain)
}

// oneArgument returns the only argument of a command.
func oneArgument(c *cli.Context, name string) (string, error) {
	switch {
	case c.NArg() != 1:
		given := "none is given"
		if c.NArg() > 1 {
			given = fmt.Sprintf("%d are given, %s", c.NArg(), strings.Join(c.Args().Slice(), " "))
		}
		return "", usagef("%s needs one %s, and %s: see %s", c.Command.Name, name, given, helpFor(c.Command.Name))
	case c.Args().First() == "":
		return "", usagef("%s is empty", name)
	}
	return c.Args().First(), nil
}

// oneOf says which values would do in place of another one, and which of them it may have been
// meant for: none where that is not given.
func oneOf(names []string, given string) string {
	last := len(names) - 1
	all := fmt.Sprintf("use %s or %s", strings.Join(names[:last], ", "), names[last])
	if meant := nearest(names, given); meant != "" {
		return fmt.Sprintf("did you mean %s? %s", meant, all)
	}
	return all
}
