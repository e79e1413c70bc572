package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"xdspub/cmd/settings"
)

// commandLine reads the arguments after the name of a command.
type commandLine struct {
	app     *cli.App
	command *cli.Command
	see     string // the command line that shows the help
	given   []settings.Given
	args    []string // without options
	help    string   // --help as written; empty if not given
}

// readCommandLine removes the options from a command line, and stores the settings that they and the
// environment give in app.Metadata. The library would take every option after the first argument for an
// argument; xdspub allows options and arguments in any order.
func readCommandLine(app *cli.App, args []string) ([]string, error) {
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
	line := commandLine{app: app, command: command, see: helpFor(strings.Join(args[1:at], " "))}
	if err := line.read(args[at:]); err != nil {
		return nil, err
	}
	names := args[:at:at]
	if line.help != "" {
		return append(names, line.help), nil // with arguments, the library would show the help of a subcommand
	}
	s, err := settings.New(rowsOf(command), line.given)
	app.Metadata[settingsKey] = s
	return append(append(names, "--"), line.args...), err
}

// read reads words up to --help.
func (l *commandLine) read(words []string) error {
	for len(words) > 0 && l.help == "" {
		word := words[0]
		switch {
		case word == "--":
			l.args = append(l.args, words[1:]...)
			return nil
		case !isFlag(word):
			l.args, words = append(l.args, word), words[1:]
			continue
		}
		n, err := l.option(words)
		if err != nil {
			return err
		}
		words = words[n:]
	}
	return nil
}

// option reads the option at the beginning of words, and returns how many words the option has.
func (l *commandLine) option(words []string) (n int, err error) {
	f := findFlag(l.command, words[0])
	if f == cli.HelpFlag {
		l.help = words[0]
		return 1, nil
	}
	o, known := f.(option)
	if !known {
		return 0, unknownFlag(l.app, l.command, words[0], l.see)
	}
	n = 1
	_, text, assigned := strings.Cut(words[0], "=")
	switch {
	case assigned:
	case !o.TakesValue():
		text = "true"
	case len(words) == 1 || words[1] == "--":
		return 0, usagef("%s needs a value: see %s", words[0], l.see)
	case isFlag(words[1]) && findFlag(l.command, words[1]) != nil:
		// With an empty variable in a script, render --out $OUT --dry-run would write into ./--dry-run.
		return 0, usagef("%s needs a value, and %s is a flag: see %s", words[0], words[1], l.see)
	default:
		n, text = 2, words[1]
	}
	if err := o.Parse(text); err != nil {
		return 0, usagef("invalid --%s %q: %v", o.Name(), text, err)
	}
	l.given = append(l.given, settings.Given{Row: o.Row, Text: text})
	return n, nil
}

// checkGlobalFlag returns an error if the flag arg, which stands before the command, is not a flag of the
// program.
func checkGlobalFlag(app *cli.App, arg string) error {
	for _, f := range app.Flags {
		if slices.Contains(f.Names(), flagName(arg)) {
			return nil
		}
	}
	if of := commandsWith(app, arg); len(of) > 0 {
		return usagef("%s is an option of a command, and goes after it: write xdspub %s %s …", arg, of[0], arg)
	}
	if meant := settings.Nearest(flagNames(app.Flags), flagName(arg)); meant != "" {
		return usagef("unknown flag %s: did you mean --%s? see xdspub --help", arg, meant)
	}
	return usagef("unknown flag %s: see xdspub --help", arg)
}

// commandsWith returns the names of the commands that have the flag arg.
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

// otherWords maps names of flags of other programs to the flags of xdspub with a similar meaning.
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

// unknownFlag returns an error for a flag that a command lacks, with a suggestion.
func unknownFlag(app *cli.App, c *cli.Command, arg, see string) error {
	name := flagName(arg)
	names := flagNames(c.Flags)
	has := func(name string) bool { return slices.Contains(names, name) }
	meant := settings.Nearest(names, name)
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

// unknownCommand returns an error for an unknown command, the last of names, with a suggestion.
func unknownCommand(commands []*cli.Command, names []string) error {
	var known []string
	for _, c := range commands {
		known = append(known, c.Names()...)
	}
	if meant := settings.Nearest(known, names[len(names)-1]); meant != "" {
		return usagef("unknown command %q: did you mean %s? see xdspub help", strings.Join(names, " "), meant)
	}
	return usagef("unknown command %q: see xdspub help", strings.Join(names, " "))
}

// oneArgument returns the argument of a command that takes exactly one. name is the name of the argument in the
// help.
func oneArgument(c *call, name string) (string, error) {
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
