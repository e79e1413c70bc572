package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"xdspub/cmd/settings"
	"xdspub/diag"
	"xdspub/event"
	"xdspub/internal/crash"
	"xdspub/render/published"
)

// The exit statuses. CI scripts tell "your config is wrong" from "the tool could
// not run" by them.
const (
	exitOK      = 0 // no error found
	exitRefused = 1 // at least one error found, or nothing published
	exitUsage   = 2 // wrong flags or arguments
	exitFailed  = 3 // could not run: I/O, environment, another writer
)

// exitMeanings has the descriptions of the exit statuses for the manual.
var exitMeanings = []struct {
	status  int
	meaning string
}{
	{exitOK, "success: no errors, everything published, everything in sync"},
	{exitRefused, "an error was found, nothing was published, an Envoy rejected the change, or something is not in sync"},
	{exitUsage, "wrong usage: a command, an option, a setting or an argument"},
	{exitFailed, "could not run: a file or directory can't be read or written, another process publishes there, an Envoy can't be asked, or xdspub has a bug"},
}

// exit is an error with the exit status of the program. If err is nil, the program has printed the error
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

// run runs the program with the arguments, args[0] being its name, and returns the exit status.
func run(args []string, stdout, stderr io.Writer) int {
	app := newApp(stdout, stderr)
	if len(args) > 1 && args[1] == completeWord {
		return completed(app, args[2:])
	}
	warnMisspelt(stderr, app.Commands)
	err := func() (err error) {
		defer crash.Catch(&err)
		return runCommand(context.Background(), app, args)
	}()
	if err == nil {
		return exitOK
	}
	return printError(err, stderr)
}

// runCommand reads a command line and runs its command. The end of ctx interrupts the command.
func runCommand(ctx context.Context, app *cli.App, args []string) error {
	args, err := readCommandLine(app, args)
	if err != nil {
		return err
	}
	return app.RunContext(ctx, args)
}

// printError prints an error, unless the command has printed it, and returns the exit status.
func printError(err error, stderr io.Writer) int {
	status := exitFailed
	var e *exit
	var usage *published.UsageError
	var set *settings.UsageError
	switch {
	case errors.As(err, &e):
		if status = e.status; e.err == nil {
			return status
		}
	case errors.As(err, &usage), errors.As(err, &set):
		status = exitUsage
	}
	fmt.Fprintf(stderr, "xdspub: %s\n", diag.Hide(printable(err)))
	if crashed, ok := errors.AsType[*crash.Error](err); ok {
		sayCrash(crashed, stderr)
		return exitFailed
	}
	if help := advice(err); help != "" {
		fmt.Fprintf(stderr, "    help: %s\n", help)
	}
	return status
}

// sayCrash prints what to do about a panic, and the lines for the report.
func sayCrash(e *crash.Error, stderr io.Writer) {
	help := "this is a bug of xdspub, and not of your files: report the bug with these lines"
	if e.Rule != "" {
		help += fmt.Sprintf("; until the bug is mended, --disable %s leaves the rule out", e.Rule)
	}
	fmt.Fprintf(stderr, "    help: %s\n", help)
	_ = writeVersion(stderr)
	fmt.Fprintln(stderr, e.Stack)
}

// printable returns the text of an error without control characters, which the name of a file or the answer of
// a server may bring in. printable keeps line breaks.
func printable(err error) string {
	lines := strings.Split(err.Error(), "\n")
	for i, line := range lines {
		lines[i] = diag.Printable(strings.ReplaceAll(line, "\t", " "))
	}
	return strings.Join(lines, "\n")
}

// advice returns the remedy for an error of the system; empty if there is no general one.
func advice(err error) string {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "free space, or inodes, on that file system, and run this again"
	case errors.Is(err, syscall.EROFS):
		return "choose a directory on a file system that can be written to, or mount that one read-write"
	case errors.Is(err, fs.ErrPermission):
		return fmt.Sprintf("this runs as the user with the ID %d: give it access, or run it as another user", os.Getuid())
	}
	return ""
}

func newApp(stdout, stderr io.Writer) *cli.App {
	app := &cli.App{
		Name:  "xdspub",
		Usage: "check a directory of Envoy resources, and publish it as files that Envoy subscribes to",
		Description: `SRC, the source tree, is a directory of files with Envoy resources, as YAML, JSON or protobuf.
--out DIR, the output directory, is what Envoy reads. Only xdspub writes there.

Exit status: 0 success, 1 an error was found or nothing was published, 2 wrong usage, 3 could
not run. Results go to standard output, logs to standard error.

Options of validate, render, watch and serve can also be set in xdspub.yaml at the root of the source
tree, or by environment variables. An option wins over a variable, and a variable over the file.

xdspub COMMAND --help shows the options of a command.`,
		Flags:           []cli.Flag{cli.HelpFlag, versionFlag()}, // the library adds --help only to apps without a help command
		HideVersion:     true,
		HideHelpCommand: true,
		Writer:          stdout,
		ErrWriter:       stderr,
		ExitErrHandler:  func(*cli.Context, error) {}, // run ends the program, not the library
		OnUsageError:    onUsageError,
		Metadata:        make(map[string]any),
		Action: func(c *cli.Context) error {
			switch {
			case c.Args().Present():
				return unknownCommand(c.App.Commands, []string{c.Args().First()})
			case c.Bool("version"):
				return writeVersion(c.App.Writer)
			}
			return cli.ShowAppHelp(c)
		},
		Commands: []*cli.Command{
			validateCommand(), renderCommand(), watchCommand(), serveCommand(), statusCommand(), historyCommand(),
			pauseCommand(), resumeCommand(), rollbackCommand(), approveCommand(), confirmCommand(), cancelCommand(), extendCommand(),
			rolloutCommand(),
			doctorCommand(), bootstrapCommand(), initCommand(), importCommand(),
			convertCommand(), rulesCommand(), explainCommand(), explainParamsCommand(), graphCommand(), diffCommand(),
			completionCommand(), manCommand(), schemaCommand(), versionCommand(), helpCommand(),
		},
	}
	withHelp([]string{app.Name}, app.Commands)
	app.CustomAppHelpTemplate = literal(appHelp(app))
	return app
}

func onUsageError(c *cli.Context, err error, _ bool) error {
	return usagef("%v: see %s", err, helpFor(c.Command.HelpName))
}

// newLogger returns the log of a command. The log has the events of --log-level and above; with --quiet, only
// warnings and errors. The sinks get all events.
func newLogger(c *call, sinks ...func(event.Record)) (*event.Log, error) {
	if err := cmp.Or(c.LogFormat.Check(), c.LogLevel.Check()); err != nil {
		return nil, err
	}
	level, err := logLevel(c)
	if err != nil {
		return nil, err
	}
	o := &slog.HandlerOptions{Level: level}
	if c.LogFormat.Value == "json" {
		return event.New(slog.NewJSONHandler(c.App.ErrWriter, o), sinks...), nil
	}
	return event.New(slog.NewTextHandler(c.App.ErrWriter, o), sinks...), nil // text is logfmt
}

// logLevel returns the lowest level that a command logs.
func logLevel(c *call) (level slog.Level, err error) {
	switch {
	case c.Quiet.Value && c.LogLevel.Given():
		return level, usagef("--quiet and --log-level %s exclude each other: --quiet logs warnings and errors; leave out one of them", c.LogLevel.Value)
	case c.Quiet.Value:
		return slog.LevelWarn, nil
	}
	return level, level.UnmarshalText([]byte(c.LogLevel.Value))
}
