package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"xdspub/cmd/settings"
)

func manCommand() *cli.Command {
	return &cli.Command{
		Name:  "man",
		Usage: "print the manual page, for man",
		Description: `Examples:
  xdspub man > /usr/local/share/man/man1/xdspub.1
  xdspub man | man -l -`,
		Action: action(func(c *call) error {
			if c.NArg() > 0 {
				return usagef("man takes no arguments")
			}
			_, err := io.WriteString(c.App.Writer, manual(c.App))
			return err
		}),
	}
}

// manual returns the manual page in roff: the help of all commands.
func manual(app *cli.App) string {
	var m manPage
	m.request("TH", "XDSPUB", "1", "", app.Name+" "+buildVersion().program, "User Commands")
	m.b.WriteString(".ad l\n.nh\n") // man breaks no names of files and options
	m.request("SH", "NAME")
	m.text(app.Name + " - " + app.Usage)
	m.request("SH", "SYNOPSIS")
	m.request("B", app.Name)
	m.text("COMMAND [options] …")
	m.request("SH", "DESCRIPTION")
	m.paragraphs(app.Description)
	m.request("SH", "COMMANDS")
	for _, c := range app.Commands {
		m.request("TP")
		m.request("B", app.Name+" "+c.Name)
		m.text(sentence(c.Usage))
	}
	m.commands([]string{app.Name}, app.Commands)
	m.request("SH", "EXIT STATUS")
	for _, row := range exitMeanings {
		m.request("TP")
		m.request("B", fmt.Sprint(row.status))
		m.text(sentence(row.meaning))
	}
	return m.b.String()
}

// manPage is a text in roff.
type manPage struct{ b strings.Builder }

// request writes a line such as .SH "EXIT STATUS".
func (m *manPage) request(name string, args ...string) {
	m.b.WriteString("." + name)
	for _, arg := range args {
		m.b.WriteString(` "` + strings.ReplaceAll(escaped(arg), `"`, `\(dq`) + `"`)
	}
	m.b.WriteByte('\n')
}

// text writes a line of text.
func (m *manPage) text(line string) {
	line = escaped(line)
	if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
		line = `\&` + line
	}
	m.b.WriteString(line + "\n")
}

// escaped returns text for roff, so that each character stands for itself.
func escaped(text string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`, "…", `\[u2026]`).Replace(text)
}

// paragraphs writes a description. man joins its lines, except indented ones.
func (m *manPage) paragraphs(text string) {
	literal := false
	for line := range strings.Lines(strings.TrimSpace(text) + "\n") {
		line = strings.TrimRight(line, "\n")
		indented := strings.HasPrefix(line, " ")
		if indented != literal {
			m.request(map[bool]string{true: "EX", false: "EE"}[indented])
			literal = indented
		}
		if line == "" {
			m.request("PP")
		} else {
			m.text(line)
		}
	}
	if literal {
		m.request("EE")
	}
}

// commands writes a section for each command. names are the names of the program and of the commands above.
func (m *manPage) commands(names []string, commands []*cli.Command) {
	for _, c := range commands {
		names := append(slices.Clone(names), c.Name)
		m.request("SH", usageLine(strings.Join(names, " "), c))
		m.text(sentence(c.Usage))
		if c.Description != "" {
			m.request("PP")
			m.paragraphs(c.Description)
		}
		for _, group := range settings.Groups() {
			m.rows(group, rowsOf(c))
		}
		m.commands(names, c.Subcommands)
	}
}

// rows writes the options of one group.
func (m *manPage) rows(group string, rows []settings.Row) {
	title := groupTitle(group)
	for _, r := range rows {
		if r.Group() != group {
			continue
		}
		if title != "" {
			m.request("SS", title)
			title = ""
		}
		head, usage := rowHelp(r)
		m.request("TP")
		m.request("B", head)
		m.text(usage)
	}
}
