package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/urfave/cli/v2"
)

//go:generate go test -count 1 -run ^TestReference$ -write-reference .

var writeReference = flag.Bool("write-reference", false, "write docs/reference again")

// TestReference holds docs/reference to the commands and flags of the program.
func TestReference(t *testing.T) {
	for name, want := range map[string][]byte{"command-line.md": commandLine(t), "settings.md": settingsPage(), "xdspub.schema.json": schemaText(t)} {
		path := filepath.Join("..", "..", "docs", "reference", name)
		if *writeReference {
			if err := os.WriteFile(path, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s is out of date: go generate ./cmd/xdspub (-want +got):\n%s", path, diff)
		}
	}
}

func schemaText(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := writeSchema(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const madeReference = "\n<!-- Made by go generate ./cmd/xdspub; a test compares. -->\n"

// commandLine is the page of all commands: their help.
func commandLine(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	b.WriteString("# Command line\n" + madeReference + `
What ` + "`xdspub COMMAND --help`" + ` prints. [Settings and environment](settings.md) lists where
else an option can stand.

## Exit status

| status | meaning |
|---|---|
`)
	for _, row := range exitMeanings {
		fmt.Fprintf(&b, "| %d | %s |\n", row.status, row.meaning)
	}
	helpOf(t, &b)
	var below func(names []string, commands []*cli.Command)
	below = func(names []string, commands []*cli.Command) {
		for _, c := range commands {
			names := append(slices.Clone(names), c.Name)
			helpOf(t, &b, names...)
			below(names, c.Subcommands)
		}
	}
	below(nil, newApp(io.Discard, io.Discard).Commands)
	return b.Bytes()
}

func helpOf(t *testing.T, b *bytes.Buffer, names ...string) {
	t.Helper()
	args := append([]string{"xdspub"}, names...)
	var help, errs bytes.Buffer
	if status := run(append(args, "--help"), &help, &errs); status != exitOK {
		t.Fatalf("%q: exit status %d\n%s", args, status, &errs)
	}
	fmt.Fprintf(b, "\n## %s\n\n```text\n%s\n```\n", strings.Join(args, " "), strings.TrimSpace(help.String()))
}

// option is a flag, with the commands that have it.
type option struct {
	flag     cli.DocGenerationFlag
	group    string
	commands []string
}

// options returns all flags that an environment variable sets, each once, in the order of the
// commands.
func options() (list []*option) {
	for _, command := range newApp(io.Discard, io.Discard).Commands {
		commands := append([]*cli.Command{command}, command.Subcommands...)
		for _, c := range commands {
			for _, f := range c.Flags {
				if d := f.(cli.DocGenerationFlag); len(d.GetEnvVars()) > 0 {
					same := func(o *option) bool { return o.flag.Names()[0] == f.Names()[0] }
					i := slices.IndexFunc(list, same)
					if i < 0 {
						i, list = len(list), append(list, &option{flag: d, group: f.(cli.CategorizableFlag).GetCategory()})
					}
					list[i].commands = append(list[i].commands, command.Name)
				}
			}
		}
	}
	return list
}

// settingsPage is the page of options that can stand in the environment and in xdspub.yaml.
func settingsPage() []byte {
	var b bytes.Buffer
	b.WriteString("# Settings and environment\n" + madeReference + `
An option can stand in three places. The command line wins over the environment variable, and
that wins over the settings file.

- **Settings file**: ` + "`xdspub.yaml`" + ` at the root of the source tree, or the file that
  ` + "`--config`" + ` names. Its keys are the options without their dashes. A list is a list of YAML.
  Paths of files and folders begin at the folder of the file. A key that is no setting
  is an error. ` + "`rules`, `overrides`, `targets` and `when`" + ` have no option:
  [severities of rules](../validation.md#severities), [targets](../dynamic-parameters.md#targets),
  [clients of a folder](../dynamic-parameters.md#variants-by-folder).
- **Environment**: an empty variable counts as one that is not set. A list is separated by commas.

A time is a number with a unit: ` + "`500ms`, `90s`, `10m`, `1h`" + `.
`)
	inFile := settingFlags()
	for _, group := range groups {
		title := group
		if group == "" {
			title = "Bootstrap"
		}
		header := fmt.Sprintf("\n## %s\n\n| option, variable | in xdspub.yaml | type | default | meaning | commands |\n|---|---|---|---|---|---|\n", title)
		for _, o := range options() {
			if o.group != group {
				continue
			}
			name := o.flag.Names()[0]
			file := "no"
			if slices.ContainsFunc(inFile, func(f cli.Flag) bool { return f.Names()[0] == name }) {
				file = "yes"
				if slices.Contains(trusted, name) {
					file = "with `--config` only"
				}
			}
			head, _ := flagHelp(o.flag)
			meaning := strings.NewReplacer("`", "", "|", `\|`).Replace(o.flag.GetUsage())
			fmt.Fprintf(&b, "%s| `%s`, `%s` | %s | %s | %s | %s | %s |\n", header, strings.ReplaceAll(head, "|", `\|`), o.flag.GetEnvVars()[0],
				file, typeOf(o.flag), defaultOf(o.flag), meaning, strings.Join(slices.Compact(o.commands), ", "))
			header = ""
		}
	}
	fmt.Fprintf(&b, `
The settings %s are allowed only in a file that %s names, not in the
%s of the tree: whoever may change the tree must not decide what is read, asked and
written outside of it.
`, "`"+strings.Join(trusted, "`, `")+"`", "`--config`", "`xdspub.yaml`")
	return b.Bytes()
}

func typeOf(f cli.DocGenerationFlag) string {
	switch f.(type) {
	case *cli.BoolFlag:
		return "true or false"
	case *cli.IntFlag:
		return "number"
	case *cli.DurationFlag:
		return "time"
	case *cli.StringSliceFlag:
		return "list"
	case *cli.PathFlag:
		return "path"
	}
	return "text"
}

func defaultOf(f cli.DocGenerationFlag) string {
	text := strings.Trim(f.GetDefaultText(), `"`)
	if _, is := f.(*cli.BoolFlag); is {
		text = "false"
	}
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}
