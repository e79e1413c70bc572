package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"xdspub/setup/initial"
)

func initCommand() *cli.Command {
	return &cli.Command{
		Name:      "init",
		Usage:     "write a source tree to start from, with what runs it",
		ArgsUsage: "DIR",
		Description: `Writes a small source tree that works, the bootstraps of its clients, and what runs them: units of
systemd, a Compose file, a pod of Kubernetes, a job of GitHub Actions. init creates
DIR if necessary. DIR may hold other files, such as those of a repository. If one of the files that
init writes exists, init writes nothing.

Example:
  xdspub init edge

Exit status: 0 written, 1 a file is there already, 2 wrong usage, 3 could not run.`,
		Action: action(initialize),
	}
}

func initialize(c *call) error {
	dir, err := oneArgument(c, "DIR")
	if err != nil {
		return err
	}
	files, err := initial.Files()
	if err != nil {
		return err
	}
	err = initial.Write(dir, files)
	if _, ok := errors.AsType[*initial.ExistsError](err); ok {
		return &exit{exitRefused, err}
	}
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "wrote into %s:\n", dir)
	for _, f := range files {
		fmt.Fprintf(&b, "  %-30s %s\n", f.Path, f.Purpose)
	}
	fmt.Fprintf(&b, `
Next, in two terminals:
  xdspub serve --grpc %s %s
  envoy --config-path %s
`, initial.Server, shellWord(filepath.Join(dir, "config")), shellWord(filepath.Join(dir, "bootstrap", "envoy-serve.yaml")))
	_, err = fmt.Fprint(c.App.Writer, b.String())
	return err
}

// shellWord returns a path as one word for a shell, in quotes if necessary.
func shellWord(path string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-"
	special := func(r rune) bool { return !strings.ContainsRune(plain, r) }
	if !strings.ContainsFunc(path, special) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
