package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

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
		Description: `SRC is one of these:
  FILE                           a bootstrap with static resources, in YAML, JSON or protobuf; or what an
                                 Envoy's /config_dump?include_eds prints
  http://HOST:PORT, unix:PATH    the admin interface of a running Envoy
  xds://HOST:PORT, xds+unix:PATH a control plane, as the node of --node-from or --node-id sees it
  etcd://HOST:PORT/PREFIX        the store of a fleet

Each resource becomes a file below DIR/config, with its comments in YAML. The rest, with the clusters
that the rest needs, becomes DIR/bootstrap.yaml or bootstrap.json. A finding names each difference. DIR
must be new or empty. If there is an error, nothing is written. Users who can read a FILE can read
the files that import writes. If SRC is no FILE, only you can read them.

From a control plane, the bootstrap is the file of --node-from, with its static resources and without
dynamic_resources. Without --node-from, and from a store, import writes no bootstrap.

A dump has no secrets. If Envoy gets a secret by SDS from a file, or from another server than the ADS
server, the imported resources still ask there. Any other secret of a dump is an error.

Next, publish DIR/config with --bootstrap DIR/bootstrap.yaml, and start Envoy with what the command
bootstrap envoy --from DIR/bootstrap.yaml prints.

Examples:
  xdspub import /etc/envoy/envoy.yaml edge
  xdspub import --root /etc/envoy envoy.yaml edge
  xdspub import http://127.0.0.1:9901 edge
  xdspub import --node-from envoy.yaml xds://127.0.0.1:18000 edge
  xdspub import --store-ca ca.pem etcd://10.0.0.1:2379/fleet edge

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
	if err := checkRemote(c, name); err != nil {
		return err
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
	rest := "and no bootstrap"
	switch {
	case imported.Bootstrap != "":
		rest = fmt.Sprintf("%d in %s", imported.Static, filepath.Join(dir, imported.Bootstrap))
	case !settings.IsStore(name):
		rest += " without --node-from"
	}
	_, err = fmt.Fprintf(c.App.Writer, "%s: %s in %s, %s\n", name, diag.Count(imported.Resources, "resource"), filepath.Join(dir, importer.Tree), rest)
	return err
}

// importFrom imports a file, the configuration of a running Envoy, or the resources of a control plane or a store.
// importFrom also returns the mode of the files to write.
func importFrom(c *call, name string) (*importer.Imported, os.FileMode, error) {
	options := importer.Options{Root: c.Root.Value}
	if settings.IsRemote(name) {
		imported, err := importRemote(c, name, options)
		return imported, onlyMine, err
	}
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
	ctx, stop := interruptible(c)
	defer stop()
	data, err := admin.ConfigDump(ctx)
	if errors.Is(err, context.Canceled) {
		return nil, 0, errEndedBySignal
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
	return importer.Dump(dump, options), onlyMine, nil
}

// onlyMine is the mode of the written files if SRC is no file: only their owner can read them.
const onlyMine os.FileMode = 0o600

// importRemote imports the resources of a control plane or a store.
func importRemote(c *call, source string, o importer.Options) (*importer.Imported, error) {
	v, of, err := settingsAndSource(c, source, check.Streams)
	if err != nil {
		return nil, err
	}
	if err := follow(v, source, nil); err != nil {
		return nil, err
	}
	from := importer.Remote{Name: source, Kind: v.remote.Kind()}
	if v.NodeFrom.Value != "" {
		if from.Bootstrap, err = load.Open(v.NodeFrom.Value); err != nil {
			return nil, fmt.Errorf("read the bootstrap: %w", err)
		}
	}
	from.Bootstrap.Envoy, from.Bootstrap.Streams = of.Envoy, of.Streams()
	ctx, stop := interruptible(c)
	defer stop()
	runRemote(ctx, v, nil)
	end := showProgress(c, "asking "+source)
	contents, err := v.remote.Read(ctx)
	end()
	if ctx.Err() != nil {
		return nil, errEndedBySignal
	}
	stop() // from now on a signal ends the process
	if err != nil {
		return nil, fmt.Errorf("%w: nothing is written", err)
	}
	from.Read = load.New(load.Options{Envoy: of.Envoy, Streams: of.Streams()}).Take(source, contents)
	if len(contents.Files) == 0 {
		return nil, &exit{exitRefused, noResources(v, source)}
	}
	return from.Import(o), nil
}

var errEndedBySignal = errors.New("ended by a signal: nothing is written")

// noResources returns why nothing is imported from a control plane or a store without resources.
func noResources(v *call, source string) error {
	if settings.IsStore(source) {
		return fmt.Errorf("%s has no resources: nothing is written", source)
	}
	return fmt.Errorf("%s has no resources for the node %q: nothing is written. Correct --node-from, or --node-id and --node-cluster",
		source, v.upstream.Node.GetId())
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
