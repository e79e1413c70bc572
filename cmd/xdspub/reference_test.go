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

	"xdspub/cmd/settings"
)

//go:generate go test -count 1 -run ^TestReference$ -write-reference .

var writeReference = flag.Bool("write-reference", false, "write docs/reference again")

// TestReference compares docs/reference with the commands and flags of the program.
func TestReference(t *testing.T) {
	for name, want := range map[string][]byte{"command-line.md": commandLinePage(t), "settings.md": settingsPage(), "xdspub.schema.json": schemaText(t)} {
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

// commandLinePage returns the page with the help of all commands.
func commandLinePage(t *testing.T) []byte {
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

// listed is a row with the commands that have it.
type listed struct {
	settings.Row
	commands []string
}

// withVariables returns the rows with an environment variable, each once, in the order of the commands.
func withVariables() (list []*listed) {
	for _, command := range newApp(io.Discard, io.Discard).Commands {
		commands := append([]*cli.Command{command}, command.Subcommands...)
		for _, c := range commands {
			for _, r := range rowsOf(c) {
				if r.Variable() == "" {
					continue
				}
				i := slices.IndexFunc(list, func(l *listed) bool { return l.Name() == r.Name() })
				if i < 0 {
					i, list = len(list), append(list, &listed{Row: r})
				}
				list[i].commands = append(list[i].commands, command.Name)
			}
		}
	}
	return list
}

// settingsPage returns the page of options that environment variables and xdspub.yaml can set.
func settingsPage() []byte {
	var b bytes.Buffer
	b.WriteString("# Settings and environment\n" + madeReference + `
An option can stand in three places. The command line wins over the environment variable, and
that wins over the settings file.

- **Settings file**: ` + "`xdspub.yaml`" + ` at the root of the source tree, or the file that
  ` + "`--config`" + ` names. Its keys are the options without their dashes. A list is a list of YAML.
  Paths of files and folders begin at the folder of the file. A key that is no setting
  is an error. ` + "`rules`, `overrides`, `targets`, `owners`, `freeze` and `when`" + `
  have no option: [severities of rules](../validation.md#severities), [targets](../dynamic-parameters.md#targets),
  [owners](../while-refused.md#owners), [freeze](../operations.md#freeze),
  [clients of a folder](../dynamic-parameters.md#variants-by-folder).
- **Environment**: an empty variable counts as one that is not set. A list is separated by commas.

A time is a number with a unit: ` + "`500ms`, `90s`, `10m`, `1h`" + `.
`)
	inFile := settings.Settable()
	var outside []string
	for _, r := range inFile {
		if r.Outside() {
			outside = append(outside, r.Name())
		}
	}
	for _, group := range settings.Groups() {
		title := group
		if group == "" {
			title = "Bootstrap"
		}
		header := fmt.Sprintf("\n## %s\n\n| option, variable | in xdspub.yaml | type | default | meaning | commands |\n|---|---|---|---|---|---|\n", title)
		for _, r := range withVariables() {
			if r.Group() != group {
				continue
			}
			file := "no"
			if slices.ContainsFunc(inFile, func(is settings.Row) bool { return is.Name() == r.Name() }) {
				file = "yes"
				if slices.Contains(outside, r.Name()) {
					file = "with `--config` only"
				}
			}
			head, _ := rowHelp(r)
			meaning := strings.NewReplacer("`", "", "|", `\|`).Replace(r.Usage())
			fmt.Fprintf(&b, "%s| `%s`, `%s` | %s | %s | %s | %s | %s |\n", header, strings.ReplaceAll(head, "|", `\|`), r.Variable(),
				file, r.Kind(), defaultOf(r), meaning, strings.Join(slices.Compact(r.commands), ", "))
			header = ""
		}
	}
	fmt.Fprintf(&b, `
The settings %s are allowed only in a file that %s names, not in the
%s of the tree: whoever may change the tree must not decide what is read, asked and
written outside of it.
`, "`"+strings.Join(outside, "`, `")+"`", "`--config`", "`xdspub.yaml`")
	return b.Bytes()
}

func defaultOf(r settings.Row) string {
	if r.Default() == "" {
		return ""
	}
	return "`" + r.Default() + "`"
}
