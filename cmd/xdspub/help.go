package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"xdspub/cmd/settings"
)

const (
	// helpWidth is the width of the help in columns.
	helpWidth = 96
	// helpColumn is the column of the descriptions of flags.
	helpColumn = 26
)

// withHelp sets the help of each command and its subcommands, and the fields that the library does not copy
// from the app. names are the names of the program and of the commands above.
func withHelp(names []string, commands []*cli.Command) {
	for _, c := range commands {
		names := append(slices.Clone(names), c.Name)
		c.OnUsageError, c.HideHelpCommand = onUsageError, true
		c.CustomHelpTemplate = literal(commandHelp(strings.Join(names, " "), c))
		withHelp(names, c.Subcommands)
	}
}

// literal returns a template that prints text.
func literal(text string) string { return strings.ReplaceAll(text, "{{", `{{"{{"}}`) }

// appHelp returns the help of the program.
func appHelp(app *cli.App) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nUsage: %s COMMAND [options] …\n\nCommands:\n", sentence(app.Usage), app.Name)
	writeCommands(&b, app.Commands)
	fmt.Fprintf(&b, "\n%s\n", strings.TrimSpace(app.Description))
	return b.String()
}

// writeCommands writes a line for each command: its name, and its usage in a column of its own.
func writeCommands(b *strings.Builder, commands []*cli.Command) {
	width := 0
	for _, c := range commands {
		width = max(width, len(c.Name))
	}
	for _, c := range commands {
		fmt.Fprintf(b, "  %-*s  %s\n", width, c.Name, c.Usage)
	}
}

// commandHelp returns the help of a command: what it does, examples, its flags by groups.
func commandHelp(name string, c *cli.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nUsage: %s\n", sentence(c.Usage), usageLine(name, c))
	if c.Description != "" {
		fmt.Fprintf(&b, "\n%s\n", strings.TrimSpace(c.Description))
	}
	if len(c.Subcommands) > 0 {
		b.WriteString("\nCommands:\n")
		writeCommands(&b, c.Subcommands)
	}
	for _, group := range settings.Groups() {
		writeRows(&b, group, rowsOf(c))
	}
	if slices.ContainsFunc(rowsOf(c), settings.Row.IsTime) {
		b.WriteString("\nTIME is a number with a unit: 500ms, 30s, 10m, 1h.\n")
	}
	return b.String()
}

// usageLine returns the synopsis of a command. name is its full name, beginning with the name of the program.
func usageLine(name string, c *cli.Command) string {
	if len(c.Flags) > 0 {
		name += " [options]"
	}
	if len(c.Subcommands) > 0 {
		name += " COMMAND"
	}
	return strings.TrimSpace(name + " " + c.ArgsUsage)
}

// writeRows writes the options of one group.
func writeRows(b *strings.Builder, group string, rows []settings.Row) {
	title := groupTitle(group)
	for _, r := range rows {
		if r.Group() != group {
			continue
		}
		if title != "" {
			fmt.Fprintf(b, "\n%s:\n", title)
			title = ""
		}
		head, usage := rowHelp(r)
		column := helpColumn
		if len(head)+4 > column {
			fmt.Fprintf(b, "  %s\n%*s", head, column, "")
		} else {
			fmt.Fprintf(b, "  %-*s", column-2, head)
		}
		for _, word := range strings.Fields(usage) {
			if column+len(word) > helpWidth {
				fmt.Fprintf(b, "\n%*s", helpColumn, "")
				column = helpColumn
			}
			if column > helpColumn {
				b.WriteByte(' ')
			}
			b.WriteString(word)
			column += len(word) + 1
		}
		b.WriteByte('\n')
	}
}

// groupTitle returns the title of a group in the help.
func groupTitle(group string) string { return cmp.Or(group, "Options") }

// rowHelp returns an option as in --out DIR, and its description with the default and the environment variable.
func rowHelp(r settings.Row) (head, usage string) {
	for _, name := range r.Names() {
		dashes := "--"
		if len(name) == 1 {
			dashes = "-"
		}
		head += ", " + dashes + name
	}
	head = strings.TrimPrefix(head, ", ")
	if value := settings.Placeholder(r.Usage()); value != "" {
		head += " " + value
	}
	usage = strings.ReplaceAll(r.Usage(), "`", "")
	if r.Repeats() {
		usage += "; may be repeated"
	}
	if r.TakesValue() && r.Default() != "" {
		usage += fmt.Sprintf(" (default: %s)", r.Default())
	}
	if r.Variable() != "" {
		usage += fmt.Sprintf(" [$%s]", r.Variable())
	}
	return head, usage
}

// sentence returns a phrase as a sentence: with a capital and a full stop.
func sentence(s string) string { return strings.ToUpper(s[:1]) + s[1:] + "." }

// helpFor returns the command line that shows the help of a command. name may begin with the name of the
// program, as names of the library do.
func helpFor(name string) string {
	return strings.Join(append(append([]string{"xdspub"}, strings.Fields(strings.TrimPrefix(name, "xdspub"))...), "--help"), " ")
}

// helpCommand returns the command help. The library's own help command knows no subcommands, and does not
// report an unknown name as wrong usage.
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
			for i, name := range names {
				command := find(commands, name)
				if command == nil {
					return unknownCommand(commands, names[:i+1])
				}
				commands = command.Subcommands
			}
			return c.App.Run(slices.Concat([]string{c.App.Name}, names, []string{"--help"}))
		},
	}
}
