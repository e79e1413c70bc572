package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"xdspub/check"
	"xdspub/cmd/settings"
	"xdspub/diag"
	"xdspub/envoy"
	"xdspub/setup/importer"
	"xdspub/source/load"
)

func importCommand() *cli.Command {
	return &cli.Command{
		Name:      "import",
		Usage:     "make a source tree and a bootstrap of an Envoy's whole configuration",
		ArgsUsage: "SRC DIR",
		Description: `SRC is a bootstrap with static resources, in YAML, JSON or protobuf; or what an Envoy's
/config_dump?include_eds prints, in a file; or the admin interface of a running Envoy itself:
http://HOST:PORT or unix:PATH.

Each resource becomes a file below DIR/config, with its comments in YAML. The rest, with the clusters
that the rest needs, becomes DIR/bootstrap.yaml or bootstrap.json. A finding names each difference. DIR
must be new or empty. If there is an error, nothing is written. Users who can read SRC can read the
files; the files from a running Envoy are for you alone.

Envoy shows no secrets. A secret of a dump that Envoy gets by SDS from a file, or from another server
than the ADS server, stays there; any other secret is an error.

Next, publish DIR/config with --bootstrap DIR/bootstrap.yaml, and start Envoy with what the command
bootstrap envoy --from DIR/bootstrap.yaml prints.

Examples:
  xdspub import /etc/envoy/envoy.yaml edge
  xdspub import --root /etc/envoy envoy.yaml edge
  xdspub import http://127.0.0.1:9901 edge

Exit status: 0 written, 1 errors in SRC, 2 wrong usage, 3 could not run.`,
		Flags:  options(settings.Import()),
		Action: action(importAction),
	}
}

func importAction(c *call) error {
	if c.NArg() != 2 {
		given := diag.Count(c.NArg(), "argument") + " is given"
		if c.NArg() != 1 {
			given = diag.Count(c.NArg(), "argument") + " are given"
		}
		return usagef("import needs SRC and DIR, and %s: see %s", given, helpFor(c.Command.Name))
	}
	name, dir := c.Args().Get(0), c.Args().Get(1)
	if name == "" || dir == "" {
		return usagef("SRC or DIR is empty")
	}
	imported, mode, err := importFrom(c, name)
	if err != nil {
		return err
	}
	checked := &check.Result{Line: imported.Line}
	checked.Add(imported.Diagnostics)
	printFindings(c, checked, !checked.Accepted())
	if !checked.Accepted() {
		return &exit{status: exitRefused}
	}
	err = importer.Write(dir, imported.Files, mode)
	if used, ok := errors.AsType[*importer.NotEmptyError](err); ok {
		return &exit{exitUsage, used}
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.App.Writer, "%s: %s in %s, %d in %s\n", name,
		diag.Count(imported.Resources, "resource"), filepath.Join(dir, importer.Tree), imported.Static, filepath.Join(dir, imported.Bootstrap))
	return err
}

// importFrom imports a file or the configuration of a running Envoy, and returns the mode of the files to
// write.
func importFrom(c *call, name string) (*importer.Imported, os.FileMode, error) {
	options := importer.Options{Root: c.Root.Value}
	of, err := c.withTypes()
	if err != nil {
		return nil, 0, err
	}
	if !isAdmin(name) {
		in, err := load.Open(name)
		if err != nil {
			return nil, 0, err
		}
		in.Envoy = in.Envoy.With(of.Types.Registry)
		return importer.Import(in, options), modeOf(name, ""), nil
	}
	admin, err := envoy.NewAdmin(name)
	if err != nil {
		return nil, 0, usagef("invalid SRC %q: %s", name, adminForm(name))
	}
	ctx, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM)
	defer stop()
	data, err := admin.ConfigDump(ctx)
	if errors.Is(err, context.Canceled) {
		return nil, 0, errors.New("ended by a signal: nothing is written")
	}
	if _, late := errors.AsType[*envoy.TimeoutError](err); late {
		return nil, 0, fmt.Errorf("%w: nothing is written. Save the dump by curl %q, and import that file", err, name+"/config_dump?include_eds")
	}
	if err != nil {
		return nil, 0, err
	}
	stop() // from now on a signal ends the process
	dump := load.Input{Name: name + "/config_dump", Format: "json", Data: data}
	dump.Envoy = dump.Envoy.With(of.Types.Registry)
	return importer.Dump(dump, options), 0o600, nil
}

// isAdmin reports whether SRC is an admin interface and not a file.
func isAdmin(name string) bool {
	for _, scheme := range []string{"http://", "https://", "unix:"} {
		if strings.HasPrefix(name, scheme) {
			return true
		}
	}
	return false
}
