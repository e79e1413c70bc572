package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/urfave/cli/v2"

	"xdspub/cmd/codes"
	"xdspub/cmd/settings"
	"xdspub/diag"
)

// completionCases are words and the completions of the last of them: a kind, and words that must be among the
// completions. A word after ! must not be among them.
var completionCases = []struct {
	words string // a ~ stands for an empty word
	kind  string
	want  string
}{
	{"~", "values", "validate render explain completion"},
	{"va", "values", "validate !render"},
	{"--", "values", "--help --version"},
	{"bogus ~", "values", ""},
	{"bootstrap ~", "values", "envoy grpc"},
	{"bootstrap envoy --tr", "values", "--transport !--output"},
	{"validate ~", "files", ""},
	{"validate - more ~", "files", ""},
	{"validate x --chan", "values", "--changed-since"},
	{"validate --", "values", "--format --color --help !-q"},
	{"validate --color never --", "values", "--format !--color"},
	{"validate --format text --fo", "values", "--format"},
	{"validate --format ~", "values", "text json sarif junit github gitlab"},
	{"validate --format=s", "values", "--format=sarif !--format=text"},
	{"validate -format=s", "values", "-format=sarif"},
	{"validate --secrets ~", "values", "read stub"},
	{"validate --min-severity w", "values", "warning"},
	{"validate --envoy-version 1.3", "values", "1.36 1.39 !1.40"},
	{"validate --disable unres", "values", "unresolved-reference"},
	{"validate --disable empty", "values", "!empty-file"},
	{"validate --enable ~", "values", "unused-resource !unresolved-reference"},
	{"explain filter-conflict/lua", "values", "filter-conflict/lua-two-scripts"},
	{"validate --disable filter-conflict", "values", "filter-conflict filter-conflict/lua-two-scripts"},
	{"validate --config ~", "files", ""},
	{"validate --quiet ~", "files", ""},
	{"validate --bogus=", "values", ""},
	{"validate -- --f", "files", ""},
	{"validate --changed-since ~", "values", ""},
	{"render --out ~", "folders", ""},
	{"render --out=x", "folders", ""},
	{"render --color ~", "values", "auto always never"},
	{"render x ~", "values", ""},
	{"render --ack-quorum ~", "values", "all any !N"},
	{"serve --log-format ~", "values", "text json logfmt"},
	{"explain empty", "values", "empty-file"},
	{"explain empty-file ~", "values", ""},
	{"import a ~", "folders", ""},
	{"import a b ~", "values", ""},
	{"help boots", "values", "bootstrap"},
	{"help bootstrap ~", "values", "envoy grpc"},
	{"help bootstrap bogus ~", "values", ""},
	{"completion ~", "values", "bash zsh fish"},
}

func completionWords(text string) []string {
	words := strings.Fields(text)
	for i, word := range words {
		words[i] = strings.TrimPrefix(word, "~")
	}
	return words
}

// offers reports an error if the completions got do not fit the case.
func offers(t *testing.T, want string, got []string) {
	t.Helper()
	for _, word := range strings.Fields(want) {
		name, not := strings.CutPrefix(word, "!")
		if slices.Contains(got, name) == not {
			t.Errorf("want %s among %q", word, got)
		}
	}
	if want == "" && len(got) > 0 {
		t.Errorf("want nothing, not %q", got)
	}
}

func TestCompletions(t *testing.T) {
	for _, c := range completionCases {
		t.Run(c.words, func(t *testing.T) {
			var out bytes.Buffer
			if status := run(append([]string{"xdspub", completeWord}, completionWords(c.words)...), &out, io.Discard); status != exitOK {
				t.Fatalf("exit status %d", status)
			}
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			if lines[0] != ":"+c.kind {
				t.Errorf("kind %s, want %s", lines[0], c.kind)
			}
			var got []string
			for _, line := range lines[1:] {
				word, _, _ := strings.Cut(line, "\t")
				got = append(got, word)
			}
			offers(t, c.want, got)
		})
	}
}

// TestPlaceholders checks that completion knows each placeholder of the help: it stands for files, folders or
// words, or is in the list of placeholders without completions.
func TestPlaceholders(t *testing.T) {
	free := strings.Fields(`PATTERN TIME GROUP URL N NAME NAME=VALUE ADDR ID KEY=VALUE IP:PORT SIZE REV ID=SAN SAN
		REGION[/ZONE[/SUB-ZONE]] TEMPLATE NAME[=TEMPLATE] NAME=ADDR TARGET NAME=CERT:KEY:CA COMMAND KEY=FIELD KEY=VALUE=SAN
		[NAME,…=]URL [NAME,…=]CMD RESOURCE TEXT USER PERCENT FIELDS CMD|URL etcd://HOST:PORT[,…]/PREFIX`)
	var look func(commands []*cli.Command)
	look = func(commands []*cli.Command) {
		for _, c := range commands {
			look(c.Subcommands)
			names := map[string]string{"its first argument": argument(c, 0)}
			for _, f := range c.Flags {
				names["--"+f.Names()[0]] = settings.Placeholder(usageOf(f))
			}
			for what, name := range names {
				kind, choices := valuesOf(name, codes.All())
				if name != "" && kind == kindValues && len(choices) == 0 && !slices.Contains(free, strings.Trim(name, "[]…")) && !slices.Contains(free, name) {
					t.Errorf("%s: %s, %s, has no completion: call it FILE, DIR, RULE or a|b|c if it is that, else add it to those that have none", c.Name, what, name)
				}
			}
		}
	}
	look(newApp(io.Discard, io.Discard).Commands)
	for _, code := range diag.WithSubCodes(codes.All()) {
		if strings.ContainsAny(code.Summary(), "\t\n") || !slices.Contains(diag.Names(codes.All()), code.Name) {
			t.Errorf("%s can't be a line", code.Name)
		}
	}
}

// shell returns the path of a shell, and a folder with two files and a folder for completions.
func shell(t *testing.T, name string) (program, dir string) {
	t.Helper()
	program, err := exec.LookPath(name)
	if err != nil {
		t.Skip(name + " is not installed")
	}
	dir = t.TempDir()
	script := []byte(map[string]string{"bash": bashCompletion, "zsh": zshCompletion, "fish": fishCompletion}[name])
	for path, text := range map[string][]byte{"_xdspub": script, "envoy.yaml": nil, "sub/a.yaml": nil} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, path), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return program, dir
}

// printed returns the output of a shell as lines.
func printed(t *testing.T, dir, program string, args ...string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil || errs.Len() > 0 {
		t.Fatalf("%s %q: %v\n%s", program, args, err, &errs)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

// TestBash runs the completion of bash with the words that its line editor would make.
func TestBash(t *testing.T) {
	bash, dir := shell(t, "bash")
	const ask = `. ./_xdspub
compopt() { echo "$@"; }
COMP_WORDS=(xdspub "$@")
COMP_CWORD=$#
_xdspub
printf '%s\n' "${COMPREPLY[@]}"`
	for _, c := range []struct{ words, want string }{
		{"va", "+o default|validate"},
		{"validate --format s", "+o default|sarif"},
		{"validate --format = s", "+o default|sarif"},
		{"validate --format = te", "+o default|text"},
		{"validate --format=te", "+o default|--format=text"}, // without = in COMP_WORDBREAKS
		{"validate x --chan", "+o default|--changed-since"},
		{"render --config", "+o default|--config"},
		{"validate e", ""}, // bash completes files itself
		{"validate --config = e", ""},
		{"init s", "+o default -o dirnames|"},
		{"render --out = s", "+o default -o dirnames|"},
		{"bootstrap envoy --server unix : /run/x --transport del", "+o default|delta-ads|delta-grpc"},
	} {
		got := strings.Join(printed(t, dir, bash, append([]string{"--norc", "-c", ask, "bash"}, strings.Fields(c.words)...)...), "|")
		if strings.Trim(got, "|") != strings.Trim(c.want, "|") {
			t.Errorf("%s: %s, want %s", c.words, got, c.want)
		}
	}
	if got := printed(t, dir, bash, "--norc", "-c", ask+"\ncomplete -p xdspub", "bash", "ver"); !slices.Contains(got, "complete -o default -F _xdspub xdspub") {
		t.Errorf("%q", got)
	}
}

// TestZsh checks the lists that the script gives to the completion system of zsh.
func TestZsh(t *testing.T) {
	zsh, dir := shell(t, "zsh")
	const ask = `compdef() { print -r -- "compdef $*" }
_describe() { print -rl -- "${(P@)@[-1]}" }
_files() { print -r -- "files $*" }
compset() { [[ $PREFIX == --*=* ]] && print -r -- "compset $*" }
. ./_xdspub
words=(xdspub "$@") CURRENT=$(( $# + 1 )) PREFIX=$@[-1]
_xdspub`
	for _, c := range []struct{ words, want string }{
		{"vers", "version:print the version of xdspub, its commit, and the version of Envoy's API that it knows"},
		{"validate --format s", "sarif"},
		{"validate --format=s", "--format=sarif"},
		{"validate e", "files"},
		{"validate --config=e", "compset -P --*=|files"},
		{"init s", "files -/"},
		{"explain empty-f", "empty-file:A resource file is empty."},
	} {
		got := printed(t, dir, zsh, append([]string{"-f", "-c", ask, "zsh"}, strings.Fields(c.words)...)...)
		for i, line := range got {
			got[i] = strings.TrimSpace(line)
		}
		if diff := cmp.Diff("compdef _xdspub xdspub|"+c.want, strings.Join(got, "|")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.words, diff)
		}
	}
}

// TestFish checks the completions of fish for whole lines.
func TestFish(t *testing.T) {
	fish, dir := shell(t, "fish")
	for _, c := range []struct{ words, want string }{
		{"vers", "version"},
		{"bootstrap ", "envoy grpc"},
		{"validate --format s", "sarif !sub/ !envoy.yaml"},
		{"validate --format=s", "--format=sarif"},
		{"validate e", "envoy.yaml"},
		{"validate s", "sub/"},
		{"validate --config=e", "--config=envoy.yaml"},
		{"init ", "sub/ !envoy.yaml"},
		{"explain empty-f", "empty-file"},
	} {
		t.Run(c.words, func(t *testing.T) {
			lines := printed(t, dir, fish, "--no-config", "-c", fmt.Sprintf("source ./_xdspub; complete -C 'xdspub %s'", c.words))
			for i, line := range lines {
				lines[i], _, _ = strings.Cut(line, "\t")
			}
			offers(t, c.want, lines)
		})
	}
}
