package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"xdspub/pipeline"
)

// The exit statuses. CI scripts tell "your config is wrong" from "the tool could
// not run" by them.
const (
	exitOK      = 0 // no error found
	exitRefused = 1 // at least one error found, or nothing published
	exitUsage   = 2 // wrong flags or arguments
	exitFailed  = 3 // could not run: I/O, environment, another writer
)

// exit is an error that says how the program ends. A nil err has been reported
// already.
type exit struct {
	status int
	err    error
}

func (e *exit) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.status)
	}
	return e.err.Error()
}

func (e *exit) Unwrap() error { return e.err }

func usagef(format string, args ...any) error {
	return &exit{exitUsage, fmt.Errorf(format, args...)}
}

// run runs the whole program, and returns the exit status.
func run(args []string, stdout, stderr io.Writer) int {
	dropEmptyVariables()
	app := newApp(stdout, stderr)
	args, err := flagsFirst(app, args)
	if err == nil {
		err = app.Run(args)
	}
	if err == nil {
		return exitOK
	}
	status := exitFailed
	var e *exit
	var usage *pipeline.UsageError
	switch {
	case errors.As(err, &e):
		if status = e.status; e.err == nil {
			return status
		}
	case errors.As(err, &usage):
		status = exitUsage
	}
	fmt.Fprintf(stderr, "xdspub: %v\n", err)
	return status
}

// dropEmptyVariables makes an empty variable one that is not set, as people mean
// it. The library would take it for the value "".
func dropEmptyVariables() {
	for _, v := range os.Environ() {
		if name, value, _ := strings.Cut(v, "="); value == "" && strings.HasPrefix(name, "XDSPUB_") {
			os.Unsetenv(name)
		}
	}
}

func newApp(stdout, stderr io.Writer) *cli.App {
	app := &cli.App{
		Name:  "xdspub",
		Usage: "publish a directory of Envoy resources as files that Envoy subscribes to",
		Description: `Exit status: 0 no error was found, 1 an error was found or nothing was published,
2 wrong usage, 3 could not run. Results go to standard output, logs to standard error.

What flags of validate, render and watch say can also stand in xdspub.yaml at the root
of the source tree: flags win, then the environment, then the file.`,
		Flags:           []cli.Flag{cli.HelpFlag}, // with a help command of ours, the library leaves it out
		HideVersion:     true,
		HideHelpCommand: true,
		Writer:          stdout,
		ErrWriter:       stderr,
		ExitErrHandler:  func(*cli.Context, error) {}, // run ends the program, not the library
		OnUsageError:    onUsageError,
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return usagef("unknown command %q: see xdspub help", c.Args().First())
			}
			return cli.ShowAppHelp(c)
		},
		Commands: []*cli.Command{
			validateCommand(), renderCommand(), watchCommand(), statusCommand(), bootstrapCommand(), convertCommand(), rulesCommand(), explainCommand(), versionCommand(), helpCommand(),
		},
	}
	inherit(app.Commands)
	return app
}

// inherit gives every command what the library does not hand down.
func inherit(commands []*cli.Command) {
	for _, c := range commands {
		c.OnUsageError, c.HideHelpCommand = onUsageError, true
		inherit(c.Subcommands)
	}
}

func onUsageError(c *cli.Context, err error, _ bool) error {
	return usagef("%v: see %s", err, helpFor(c.Command.HelpName))
}

// helpFor returns the command line that shows the help of a command. The library has
// its full name, beginning with the program's.
func helpFor(name string) string {
	return strings.Join(append(append([]string{"xdspub"}, strings.Fields(strings.TrimPrefix(name, "xdspub"))...), "--help"), " ")
}

// helpCommand stands in for the library's, which knows no subcommands and takes
// a name that does not exist for a failure.
func helpCommand() *cli.Command {
	return &cli.Command{
		Name:      "help",
		Usage:     "show the help of a command",
		ArgsUsage: "[COMMAND]…",
		Action: func(c *cli.Context) error {
			if !c.Args().Present() {
				return cli.ShowAppHelp(c)
			}
			names := c.Args().Slice()
			commands := c.App.Commands
			for _, name := range names {
				command := find(commands, name)
				if command == nil {
					return usagef("unknown command %q: see xdspub help", strings.Join(names, " "))
				}
				commands = command.Subcommands
			}
			return c.App.Run(slices.Concat([]string{c.App.Name}, names, []string{"--help"}))
		},
	}
}

// flagsFirst moves flags before arguments. The library stops at the first
// argument and would take every flag behind it for one more; the command line
// allows both orders.
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
	if command == nil || len(command.Subcommands) > 0 {
		return args, nil
	}
	see := helpFor(strings.Join(args[1:at], " "))
	flags, rest := args[:at:at], []string(nil)
	for i := at; i < len(args); i++ {
		arg := args[i]
		f := findFlag(command, arg)
		_, isBool := f.(*cli.BoolFlag)
		switch {
		case arg == "--":
			rest = append(rest, args[i+1:]...)
			i = len(args)
		case !isFlag(arg):
			rest = append(rest, arg)
		case f == nil:
			return nil, usagef("unknown flag %s: see %s", arg, see)
		case f == cli.HelpFlag:
			return append(flags, arg), nil // the library would ask for help on the arguments
		case isBool || strings.Contains(arg, "="):
			flags = append(flags, arg)
		case i+1 == len(args) || args[i+1] == "--":
			return nil, usagef("%s wants a value: see %s", arg, see)
		case isFlag(args[i+1]) && findFlag(command, args[i+1]) != nil:
			// The library would take the flag for the value: with an empty variable
			// in a script, render --out $OUT --dry-run would write into ./--dry-run.
			return nil, usagef("%s wants a value, and %s is a flag: see %s", arg, args[i+1], see)
		default:
			i++
			flags = append(flags, arg, args[i])
		}
	}
	return append(append(flags, "--"), rest...), nil
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
	name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-"), "=")
	for _, f := range append(slices.Clone(c.Flags), cli.HelpFlag) {
		if isFlag(arg) && slices.Contains(f.Names(), name) {
			return f
		}
	}
	return nil
}

// oneArgument returns the only argument of a command.
func oneArgument(c *cli.Context, name string) (string, error) {
	switch {
	case c.NArg() != 1:
		return "", usagef("%s wants one %s, not %d: see %s", c.Command.Name, name, c.NArg(), helpFor(c.Command.Name))
	case c.Args().First() == "":
		return "", usagef("%s is empty", name)
	}
	return c.Args().First(), nil
}

func newLogger(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }
