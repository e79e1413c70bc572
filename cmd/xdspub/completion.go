package main

import (
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"xdspub/cmd/codes"
	"xdspub/cmd/settings"
	"xdspub/diag"
)

// completeWord is the first argument of a shell that asks for the completions of the last argument.
const completeWord = "__complete"

// The completion scripts of the shells.
var (
	//go:embed completion/xdspub.bash
	bashCompletion string
	//go:embed completion/xdspub.zsh
	zshCompletion string
	//go:embed completion/xdspub.fish
	fishCompletion string
)

func completionCommand() *cli.Command {
	scripts := map[string]string{"bash": bashCompletion, "zsh": zshCompletion, "fish": fishCompletion}
	const shells = "bash|zsh|fish"
	return &cli.Command{
		Name:      "completion",
		Usage:     "print a script by which a shell completes commands, options and their values",
		ArgsUsage: shells,
		Description: `For each completion, the script calls the xdspub in PATH, which reads no file.

bash, in ~/.bashrc:
  source <(xdspub completion bash)
zsh, in a folder of $fpath, such as:
  xdspub completion zsh > /usr/local/share/zsh/site-functions/_xdspub
fish:
  xdspub completion fish > ~/.config/fish/completions/xdspub.fish`,
		Action: action(func(c *call) error {
			name, err := oneArgument(c, "SHELL")
			if err != nil {
				return err
			}
			script, ok := scripts[name]
			if !ok {
				return usagef("unknown shell %q: %s", name, settings.OneOf(strings.Split(shells, "|"), name))
			}
			_, err = io.WriteString(c.App.Writer, script)
			return err
		}),
	}
}

// choice is a completion: the whole word, and its meaning, which may be empty.
type choice struct{ word, meaning string }

// The kinds of completions. complete returns all values; the shell looks up files and folders.
const (
	kindValues  = "values"
	kindFiles   = "files"
	kindFolders = "folders"
)

// writeCompletions prints the completions of the last of words, which follow the name of the program: a line
// :KIND, then a line for each completion, with a tab and the meaning if there is one.
func writeCompletions(w io.Writer, app *cli.App, words []string) error {
	kind, choices := complete(app, words)
	var b strings.Builder
	fmt.Fprintf(&b, ":%s\n", kind)
	for _, c := range choices {
		if len(words) > 0 && strings.HasPrefix(c.word, words[len(words)-1]) {
			fmt.Fprintln(&b, strings.TrimSuffix(c.word+"\t"+c.meaning, "\t"))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// complete returns the possible values of the last word, and their kind. complete reads no files.
func complete(app *cli.App, words []string) (kind string, choices []choice) {
	if len(words) == 0 {
		return kindValues, nil
	}
	before, current := words[:len(words)-1], words[len(words)-1]
	command, args := commandOf(app.Commands, before)
	switch {
	case command == nil && len(args) > 0:
		return kindValues, nil // an unknown command
	case command == nil && isFlag(current):
		return kindValues, flagChoices(app.Flags, nil)
	case command == nil:
		return kindValues, commandChoices(app.Commands)
	case len(command.Subcommands) > 0 && !isFlag(current):
		return kindValues, commandChoices(command.Subcommands)
	case command.Name == "help":
		return kindValues, commandChoices(commandsBelow(app.Commands, args))
	}
	return completeFor(command, args, current)
}

// commandOf returns the command at the beginning of words, nil for none, and the words after it.
func commandOf(commands []*cli.Command, words []string) (command *cli.Command, rest []string) {
	for len(words) > 0 {
		next := find(commands, words[0])
		if next == nil {
			break
		}
		command, commands, words = next, next.Subcommands, words[1:]
	}
	return command, words
}

// commandsBelow returns the commands that can follow the names in the arguments of help.
func commandsBelow(commands []*cli.Command, names []string) []*cli.Command {
	if len(names) == 0 {
		return commands
	}
	command, rest := commandOf(commands, names)
	if command == nil || len(rest) > 0 {
		return nil
	}
	return command.Subcommands
}

// completeFor returns the possible values of the word current after the words before, and their kind.
func completeFor(command *cli.Command, before []string, current string) (kind string, choices []choice) {
	flags := append(slices.Clone(command.Flags), cli.HelpFlag)
	var given []string // names of flags
	var valueOf *option
	args, onlyArgs := 0, false
	for _, word := range before {
		f := findFlag(command, word)
		switch {
		case valueOf != nil:
			valueOf = nil
		case word == "--" && !onlyArgs:
			onlyArgs = true
		case onlyArgs || !isFlag(word):
			args++
		case f != nil:
			given = append(given, f.Names()[0])
			if o, ok := f.(option); ok && o.TakesValue() && !strings.Contains(word, "=") {
				valueOf = &o
			}
		}
	}
	name, _, assigned := strings.Cut(current, "=")
	switch {
	case valueOf != nil:
		return valueOf.values()
	case onlyArgs || !strings.HasPrefix(current, "-"):
		return valuesOf(argument(command, args), codes.All())
	case !assigned:
		return kindValues, flagChoices(flags, given)
	}
	o, ok := findFlag(command, name).(option)
	if !ok {
		return kindValues, nil
	}
	kind, choices = o.values()
	for i, c := range choices {
		choices[i].word = name + "=" + c.word
	}
	return kind, choices
}

// values returns the possible values of an option, and their kind.
func (o option) values() (kind string, choices []choice) {
	return valuesOf(settings.Placeholder(o.Usage()), o.Codes())
}

// argument returns the name of the argument n, from 0, in the help of a command; empty if the command takes
// fewer. The last argument may be repeated.
func argument(c *cli.Command, n int) string {
	names := strings.Fields(strings.NewReplacer("[", "", "]", "").Replace(c.ArgsUsage))
	if n < len(names) {
		return names[n]
	}
	if n > 0 && strings.Contains(c.ArgsUsage, "…") {
		return names[len(names)-1]
	}
	return ""
}

// valuesOf returns the possible values of a placeholder of the help, and their kind: the words of a|b|c, the
// names of rules, files or folders. rules are the rules that the value can name.
func valuesOf(placeholder string, rules []diag.Code) (kind string, choices []choice) {
	switch first, _, _ := strings.Cut(strings.TrimSuffix(placeholder, "…"), "|"); strings.TrimSuffix(first, "…") {
	case "FILE", "PATH", "SRC", "OLD":
		return kindFiles, nil
	case "DIR":
		return kindFolders, nil
	case "RULE":
		return kindValues, ruleChoices(rules)
	}
	for _, word := range settings.Choices(placeholder) {
		choices = append(choices, choice{word, ""})
	}
	return kindValues, choices
}

func ruleChoices(rules []diag.Code) (choices []choice) {
	for _, code := range diag.WithSubCodes(rules) {
		choices = append(choices, choice{code.Name, code.Summary()})
	}
	return choices
}

func commandChoices(commands []*cli.Command) (choices []choice) {
	for _, c := range commands {
		choices = append(choices, choice{c.Name, c.Usage})
	}
	return choices
}

// flagChoices returns the flags, except the given ones that can't be repeated.
func flagChoices(flags []cli.Flag, given []string) (choices []choice) {
	for _, f := range flags {
		o, isOption := f.(option)
		usage := usageOf(f)
		if name := f.Names()[0]; isOption && o.Repeats() || !slices.Contains(given, name) {
			short, _, _ := strings.Cut(strings.ReplaceAll(usage, "`", ""), ";")
			choices = append(choices, choice{"--" + name, short})
		}
	}
	return choices
}

// completed prints the completions that a shell asks for, and returns the exit status.
func completed(app *cli.App, words []string) int {
	if err := writeCompletions(app.Writer, app, words); err != nil {
		return exitFailed
	}
	return exitOK
}
