package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

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

// run is the whole program: it returns the exit status.
func run(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	app := newApp(stdout, stderr)
	args, err := flagsFirst(app, args)
	if err == nil {
		err = app.RunContext(ctx, args)
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

func newApp(stdout, stderr io.Writer) *cli.App {
	app := &cli.App{
		Name:            "xdspub",
		Usage:           "publish a directory of Envoy resources as files that Envoy subscribes to",
		HideVersion:     true,
		HideHelpCommand: false,
		Writer:          stdout,
		ErrWriter:       stderr,
		ExitErrHandler:  func(*cli.Context, error) {}, // run ends the program, not the library
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return usagef("unknown command %q: see xdspub help", c.Args().First())
			}
			return cli.ShowAppHelp(c)
		},
		Commands: []*cli.Command{
			validateCommand(), renderCommand(), watchCommand(), bootstrapCommand(), rulesCommand(), explainCommand(), versionCommand(),
		},
	}
	app.OnUsageError = onUsageError
	inherit(app.Commands)
	return app
}

// inherit gives every command what the library does not hand down.
func inherit(commands []*cli.Command) {
	for _, c := range commands {
		c.OnUsageError = onUsageError
		if c.Subcommands == nil {
			c.HideHelpCommand = true
		}
		inherit(c.Subcommands)
	}
}

func onUsageError(c *cli.Context, err error, _ bool) error {
	return usagef("%v: see xdspub %s --help", err, strings.TrimSpace(strings.TrimPrefix(c.Command.HelpName, "xdspub")))
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
	flags, rest := args[:at:at], []string(nil)
	for i := at; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			rest = append(rest, args[i+1:]...)
			i = len(args)
		case !strings.HasPrefix(arg, "-") || arg == "-":
			rest = append(rest, arg)
		default:
			flags = append(flags, arg)
			if takesValue(command, arg) {
				if i++; i < len(args) {
					flags = append(flags, args[i])
				}
			}
		}
	}
	return append(append(flags, "--"), rest...), nil
}

func find(commands []*cli.Command, name string) *cli.Command {
	for _, c := range commands {
		if c.HasName(name) {
			return c
		}
	}
	return nil
}

// takesValue tells whether the flag in arg has its value in the next argument.
func takesValue(c *cli.Command, arg string) bool {
	name, _, joined := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	if joined {
		return false
	}
	for _, f := range c.Flags {
		for _, n := range f.Names() {
			if n == name {
				_, isBool := f.(*cli.BoolFlag)
				return !isBool
			}
		}
	}
	return false
}

// oneArgument is the only argument of a command.
func oneArgument(c *cli.Context, name string) (string, error) {
	if c.NArg() != 1 {
		return "", usagef("%s wants one %s, not %d: see xdspub %s --help", c.Command.Name, name, c.NArg(), c.Command.Name)
	}
	return c.Args().First(), nil
}

func newLogger(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }
