// Command same compares two builds of xdspub. Both builds get the same source trees. same prints each
// difference of output, exit status, and published files. A change of the code's structure must make no
// difference (scripts/same).
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"golang.org/x/tools/txtar"
)

// commands are run one after the other in a folder that has the tree in `tree`, and leave their files in `out`.
var commands = []string{
	"validate --format json tree",
	"validate --variants tree",
	"render --dry-run --out out tree",
	"render --out out tree",
	"render --out out tree",
	"render --format yaml --eds file --out yaml tree",
	"status --out out tree",
	"status --out out --format json tree",
	"bootstrap envoy --out out --node-id a --node-cluster b",
}

// bootstrapCommands run for each bootstrap.
var bootstrapCommands = []string{
	"validate --format json bootstrap.yaml",
	"import bootstrap.yaml imported",
	"render --bootstrap imported/bootstrap.yaml --out out imported/config",
}

func main() {
	flag.Parse()
	if flag.NArg() < 3 {
		log.Fatal("usage: same OLD NEW PATH...")
	}
	old, changed := flag.Arg(0), flag.Arg(1)
	dir, err := os.MkdirTemp("", "same") // both programs print the same paths, since they share the directory
	must(err)
	defer os.RemoveAll(dir)
	trees, differ := 0, 0
	for _, path := range flag.Args()[2:] {
		all, err := inputs(path)
		if err != nil {
			log.Fatal(err)
		}
		for _, in := range all {
			trees++
			a, b := in.play(old, dir), in.play(changed, dir)
			if a != b {
				differ++
				fmt.Printf("%s differs:\n%s\n", in.name, firstDifference(a, b))
			}
		}
	}
	fmt.Printf("%d of %d inputs differ\n", differ, trees)
	if differ > 0 {
		os.RemoveAll(dir)
		os.Exit(1)
	}
}

// input is a source tree, or a bootstrap.
type input struct {
	name     string
	files    fs.FS
	commands []string
}

// inputs returns the inputs of a path: a folder is a source tree, an archive has one in each of its folders, and
// any other file is a bootstrap.
func inputs(path string) (list []input, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return []input{{path, os.DirFS(path), commands}}, nil
	}
	if filepath.Ext(path) != ".txtar" {
		text, err := os.ReadFile(path)
		return []input{{path, memory(map[string][]byte{"bootstrap.yaml": text}), bootstrapCommands}}, err
	}
	archive, err := txtar.ParseFile(path)
	if err != nil {
		return nil, err
	}
	trees := make(map[string]map[string][]byte)
	var order []string
	for _, f := range archive.Files {
		if !fs.ValidPath(f.Name) {
			continue
		}
		tree, rest, below := strings.Cut(f.Name, "/")
		if !below {
			tree, rest = "", f.Name
		}
		if trees[tree] == nil {
			trees[tree] = make(map[string][]byte)
			order = append(order, tree)
		}
		trees[tree][rest] = f.Data
	}
	for _, tree := range order {
		list = append(list, input{path + "/" + tree, memory(trees[tree]), commands})
	}
	return list, nil
}

// play runs the commands of an input in a folder, and returns their output, exit statuses and files.
func (in input) play(program, dir string) string {
	must(os.RemoveAll(dir))
	must(os.MkdirAll(dir, 0o755))
	to := filepath.Join(dir, "tree")
	if in.commands[0] == bootstrapCommands[0] {
		to = dir
	}
	must(os.CopyFS(to, in.files))
	var seen strings.Builder
	for _, words := range in.commands {
		fmt.Fprintf(&seen, "$ xdspub %s\n%s", words, run(dir, program, strings.Fields(words)))
	}
	must(filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || e.Name() == "lock" || strings.HasPrefix(path, to+"/") && to != dir {
			return err
		}
		text, err := os.ReadFile(path)
		fmt.Fprintf(&seen, "-- %s --\n%s\n", path, text)
		return err
	}))
	return strings.ReplaceAll(volatile.ReplaceAllString(seen.String(), "TIME"), " (TIME ago)", "")
}

// volatile matches the texts that differ between two runs of one program: times, durations, and the identity of
// files.
var volatile = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)|\d\d:\d\d:\d\d(\.\d+)?|\b\d+(\.\d+)?(ms|µs|s)\b|"(duration|modified|inode|mtime|ctime|size|device)[^,}]*`)

func run(dir, program string, args []string) string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, program, args...)
	c.Dir = dir
	c.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}
	out, err := c.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		log.Fatal(err)
	}
	return fmt.Sprintf("%s[exit status %d]\n", out, c.ProcessState.ExitCode())
}

// firstDifference returns the first lines that differ, with the command before them.
func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	command := ""
	for i := range min(len(x), len(y)) {
		if strings.HasPrefix(x[i], "$ ") || strings.HasPrefix(x[i], "-- ") {
			command = x[i]
		}
		if x[i] != y[i] {
			return fmt.Sprintf("  %s\n  - %s\n  + %s", command, x[i], y[i])
		}
	}
	return fmt.Sprintf("  %s\n  %d lines and %d lines", command, len(x), len(y))
}

// memory returns a file system of some files.
func memory(files map[string][]byte) fs.FS {
	a := new(txtar.Archive)
	for name, data := range files {
		a.Files = append(a.Files, txtar.File{Name: name, Data: bytes.Clone(data)})
	}
	f, err := txtar.FS(a)
	must(err)
	return f
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
