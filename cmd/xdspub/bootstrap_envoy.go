package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"xdspub/check"
	"xdspub/diag"
	"xdspub/internal/addr"
	"xdspub/render"
	"xdspub/render/publish"
	"xdspub/render/published"
	"xdspub/setup/bootstrap"
	"xdspub/source/load"
	"xdspub/xds"
)

func bootstrapEnvoyCommand() *cli.Command {
	return &cli.Command{
		Name:      "envoy",
		Usage:     "write the bootstrap of an Envoy, for files or for xdspub serve",
		ArgsUsage: "[SRC]",
		Description: `Prints a bootstrap that subscribes Envoy to clusters, listeners and runtime layers: to those in
the files of --out, or by another --transport to those of a server. For a server, SRC is the source
tree that it serves: the bootstrap gets its runtime layers. The options and settings by which serve
reads SRC are for this command too; the bootstrap of --from is that of --bootstrap, where none is
given. Restart Envoy where the bootstrap changes. With --target, SRC is the source tree whose settings have that
target: for files it is about the folder of the target below --out. By files, publish before Envoy starts: it exits if a file of its bootstrap is missing.

Examples:
  xdspub bootstrap envoy --out /var/lib/xds > envoy.yaml
  xdspub bootstrap envoy --out /var/lib/xds --envoy-path /xds --admin unix:/run/envoy.sock
  xdspub bootstrap envoy --transport delta-ads --server unix:/run/xds.sock config/ > envoy.yaml
  xdspub bootstrap envoy --transport delta-ads --server xds.example:18000 --tls-ca ca.pem \
    --tls-cert edge.pem --tls-key edge.key --output /etc/envoy/envoy.yaml config/

Exit status: 0 written, 1 errors in the bootstrap or in SRC, 2 wrong usage, 3 could not run.`,
		Flags:  bootstrapEnvoyFlags(),
		Action: bootstrapEnvoy,
	}
}

func bootstrapEnvoyFlags() []cli.Flag {
	return append(sourceFlags(),
		targetFlag(),
		&cli.StringFlag{Category: groupResources, Name: "transport", EnvVars: env("transport"), Value: string(bootstrap.File), Usage: "how resources come: `" + strings.Join(transportNames(), "|") + "`; all but file come from xdspub serve"},
		&cli.PathFlag{Category: groupResources, Name: "out", EnvVars: env("out"), Usage: "output `DIR` of render or watch (required for files)"},
		&cli.StringFlag{Category: groupResources, Name: "envoy-path", EnvVars: env("envoy-path"), Usage: "absolute path of the output `DIR` as Envoy sees it (default: as it was published)"},
		&cli.StringFlag{Category: groupResources, Name: "format", EnvVars: env("format"), Usage: "format of the published files: `" + strings.Join(formatNames(), "|") + "` (default: as they were published, else " + render.JSON.Name + ")"},
		pollIntervalFlag(groupResources, "have Envoy read the files that the bootstrap names every `TIME`, for file systems without events; give render or watch the same for all others"),
		&cli.StringFlag{Category: groupResources, Name: "server", EnvVars: env("server"), Usage: "`ADDR` of the server, HOST:PORT or unix:PATH: one of --grpc, or for rest of --http, as Envoy sees it (required but for files)"},
		&cli.StringFlag{Category: groupResources, Name: "xds-cluster", EnvVars: env("xds-cluster"), Value: bootstrap.DefaultCluster, Usage: "`NAME` of the cluster that leads to the server, as serve has it"},
		&cli.PathFlag{Category: groupResources, Name: "tls-ca", Usage: "connect by TLS: certificates that sign that of the server, a `FILE` in PEM; needs --output, beside which the files are written by which Envoy reads certificates again when they change"},
		&cli.StringFlag{Category: groupResources, Name: "tls-server-name", Usage: "`NAME` in the certificate of the server (default: the host of --server)"},
		&cli.PathFlag{Category: groupResources, Name: "tls-cert", Usage: "certificate chain of this Envoy, a `FILE` in PEM, for a server with --client-ca"},
		&cli.PathFlag{Category: groupResources, Name: "tls-key", Usage: "private key of --tls-cert, a `FILE` in PEM"},
		&cli.StringFlag{Category: groupNode, Name: "node-id", EnvVars: env("node-id"), Value: "envoy", Usage: "node `ID` of this Envoy"},
		&cli.StringFlag{Category: groupNode, Name: "node-cluster", EnvVars: env("node-cluster"), Value: "envoy", Usage: "node cluster `NAME` of this Envoy"},
		&cli.StringFlag{Category: groupNode, Name: "node-locality", EnvVars: env("node-locality"), Usage: "where this Envoy runs: `REGION[/ZONE[/SUB-ZONE]]`"},
		&cli.StringSliceFlag{Category: groupNode, Name: "node-metadata", EnvVars: env("node-metadata"), Usage: "tell servers `KEY=VALUE` of this Envoy, a text"},
		&cli.StringFlag{Category: groupNode, Name: "admin", EnvVars: env("admin"), Value: "127.0.0.1:9901", Usage: "Envoy's admin address, `IP:PORT` or unix:PATH"},
		&cli.StringFlag{Category: groupNode, Name: "admin-paths", EnvVars: env("admin-paths"), Value: adminPaths[0], Usage: "paths that the admin interface answers: `" + strings.Join(adminPaths, "|") + "`; needed: /ready, /server_info and what xdspub asks of /stats and /config_dump, all else is 403 (Envoy 1.37 and newer)"},
		&cli.StringSliceFlag{Category: groupNode, Name: "stats-tag", EnvVars: env("stats-tag"), Usage: "give all statistics the tag `NAME=VALUE`"},
		&cli.IntFlag{Category: groupNode, Name: "max-connections", EnvVars: env("max-connections"), Usage: "let clients have `N` connections at most, all listeners together; the admin address stays open", DefaultText: "no limit"},
		&cli.StringFlag{Category: groupNode, Name: "max-heap", EnvVars: env("max-heap"), Usage: "keep Envoy's memory below `SIZE`, such as 512MiB or 2GiB: at 95% it gives back what is free, at 98% it answers new requests with 503 (default: no limit)"},
		&cli.PathFlag{Category: groupNode, Name: "from", EnvVars: env("from"), Usage: "add to the bootstrap in `FILE`, YAML or JSON: all of it stays, comments too; what contradicts it is an error"},
		&cli.PathFlag{Category: groupPrint, Name: "output", Value: "-", Usage: "write to `FILE` once all is well (- is standard output)"},
		// No variable: a program is named where it is started.
		&cli.PathFlag{Category: groupPrint, Name: "envoy", Usage: "write nothing that this Envoy, a program `FILE` or a name in PATH, refuses by --mode validate; files that the bootstrap names have to be there, and Lua code in it runs"},
		maxFindingsFlag(),
		colorFlag(),
	)
}

// adminPaths are the values of --admin-paths.
var adminPaths = []string{"all", "needed"}

func transportNames() (names []string) {
	for _, t := range bootstrap.Transports {
		names = append(names, string(t))
	}
	return names
}

func bootstrapEnvoy(c *cli.Context) error {
	if err := noSourceFlags(c); err != nil {
		return err
	}
	v := values{c: c}
	o, err := envoyOptions(v)
	if err != nil {
		return err
	}
	base, err := readBase(c, &o)
	if err != nil {
		return err
	}
	if o.Transport == bootstrap.File {
		err = readFiles(c, &o)
	} else {
		err = connect(v, &o)
	}
	if err != nil {
		return err
	}
	text, err := envoyText(c, o, base)
	if err != nil {
		return err
	}
	secrets, err := o.Server.Secrets()
	if err != nil {
		return &exit{exitUsage, err}
	}
	return writeBootstrap(c, text, base, secrets)
}

// readBase reads the file of --from, nil where there is none. What it sets wins over the defaults of
// flags.
func readBase(c *cli.Context, o *bootstrap.EnvoyOptions) (*bootstrap.Base, error) {
	name := c.Path("from")
	if !c.IsSet("from") {
		return nil, nil
	}
	own, err := readOwnTypes(values{c: c})
	if err != nil {
		return nil, err
	}
	in, err := load.Open(name)
	in.Envoy = in.Envoy.With(own.registry)
	switch {
	case err != nil:
		return nil, err
	case in.Format != "yaml" && in.Format != "json":
		return nil, usagef("invalid --from %q: its suffix is that of the format %s, write it in YAML or JSON", name, in.Format)
	}
	base, result := bootstrap.Read(in)
	checked := &check.Result{Line: result.Line}
	checked.Add(result.Diagnostics)
	if base == nil {
		printFindings(c, checked, true)
		return nil, &exit{status: exitRefused}
	}
	node := base.Message.GetNode()
	if id := node.GetId(); id != "" && !c.IsSet("node-id") {
		o.NodeID = id
	}
	if cluster := node.GetCluster(); cluster != "" && !c.IsSet("node-cluster") {
		o.NodeCluster = cluster
	}
	if base.Message.GetAdmin().GetAddress() != nil && !c.IsSet("admin") {
		o.Admin = ""
	}
	return base, nil
}

// envoyText returns the bootstrap, added to what is there.
func envoyText(c *cli.Context, o bootstrap.EnvoyOptions, base *bootstrap.Base) (text []byte, err error) {
	if base == nil {
		text, err = bootstrap.Envoy(o)
	} else {
		var conflicts diag.List
		text, conflicts, err = base.Merge(o)
		if len(conflicts) > 0 {
			checked := &check.Result{Line: base.Line}
			checked.Add(conflicts)
			printFindings(c, checked, true)
			return nil, &exit{status: exitRefused}
		}
	}
	if err != nil {
		return nil, &exit{exitUsage, err}
	}
	return text, nil
}

// judgeBootstrap judges a bootstrap that is not written yet. What is wrong in the base of it has its
// place there.
func judgeBootstrap(c *cli.Context, draft load.Input, base *bootstrap.Base) (*check.Result, error) {
	rules := check.Rules{}
	if base != nil {
		rules.Envoy = base.Input().Envoy
	}
	checked, err := check.Bootstrap(c.Context, check.BootstrapOptions{Rules: rules, Draft: &draft})
	if err != nil || base == nil {
		return checked, err
	}
	of := base.Input()
	was, err := check.Bootstrap(c.Context, check.BootstrapOptions{Rules: rules, Draft: &of})
	if err != nil {
		return nil, err
	}
	for i, d := range checked.Diagnostics {
		same := func(other diag.Diagnostic) bool {
			return other.Code == d.Code && other.Resource == d.Resource && other.Message == d.Message
		}
		if j := slices.IndexFunc(was.Diagnostics, same); j >= 0 {
			checked.Diagnostics[i] = was.Diagnostics[j]
		}
	}
	merged := checked.Line
	checked.Line = func(p diag.Position) (string, bool) {
		if p.File == of.Name {
			return was.Line(p)
		}
		return merged(p)
	}
	return checked, nil
}

// writeBootstrap writes a bootstrap where it has no error.
func writeBootstrap(c *cli.Context, text []byte, base *bootstrap.Base, secrets []bootstrap.SecretFile) error {
	draft := load.Input{Name: outputName(c), Format: "yaml", Data: text}
	if base != nil {
		draft.Name, draft.Format = "<merged>", base.Input().Format // output may be the file of the base
	}
	checked, err := judgeBootstrap(c, draft, base)
	if err != nil {
		return err
	}
	printFindings(c, checked, !checked.Accepted())
	if !checked.Accepted() {
		return &exit{status: exitRefused}
	}
	if c.IsSet("envoy") {
		if err := askEnvoy(c, draft, secrets); err != nil {
			return err
		}
	}
	for _, s := range secrets {
		if err := replaceFile(s.Path, s.Data, 0o644); err != nil {
			return err
		}
	}
	return replaceOutput(c, text, modeOf(c.Path("output"), c.Path("from")))
}

// outputName returns the name that findings give to what goes to --output.
func outputName(c *cli.Context) string {
	if output := c.Path("output"); output != "-" {
		return output
	}
	return "<stdout>"
}

// replaceOutput has the file of --output hold a text, or prints it.
func replaceOutput(c *cli.Context, text []byte, mode os.FileMode) error {
	if output := c.Path("output"); output != "-" {
		return replaceFile(output, text, mode)
	}
	_, err := c.App.Writer.Write(text)
	return err
}

// modeOf returns who may read a bootstrap: as before, or, since there may be keys in it, who may
// read what it is made from.
func modeOf(output, from string) os.FileMode {
	for _, name := range []string{output, from} {
		if info, err := os.Stat(name); err == nil {
			return info.Mode().Perm()
		}
	}
	return 0o644
}

// replaceFile has a file hold data, and never a part of it.
func replaceFile(name string, data []byte, mode os.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // where it has not got its name
	_, err = f.Write(data)
	if err := errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

// envoyOptions returns what the flags say beside where resources come from.
func envoyOptions(v values) (o bootstrap.EnvoyOptions, err error) {
	c := v.c
	o = bootstrap.EnvoyOptions{
		Transport: bootstrap.Transport(c.String("transport")),
		NodeID:    c.String("node-id"), NodeCluster: c.String("node-cluster"), Admin: c.String("admin"),
	}
	if !slices.Contains(bootstrap.Transports, o.Transport) {
		return o, v.invalid("transport", string(o.Transport), oneOf(transportNames(), string(o.Transport)))
	}
	paths := c.String("admin-paths")
	if !slices.Contains(adminPaths, paths) {
		return o, v.invalid("admin-paths", paths, oneOf(adminPaths, paths))
	}
	o.LimitAdmin = paths == "needed"
	if locality := c.String("node-locality"); locality != "" {
		parts, err := localityParts(v, locality)
		if err != nil {
			return o, err
		}
		o.Region, o.Zone, o.SubZone = parts[0], parts[1], parts[2]
	}
	if o.Metadata, err = pairs(v, "node-metadata", "KEY=VALUE"); err != nil {
		return o, err
	}
	if o.StatsTags, err = pairs(v, "stats-tag", "NAME=VALUE"); err != nil {
		return o, err
	}
	if n := c.Int("max-connections"); c.IsSet("max-connections") {
		if n < 1 {
			return o, v.invalid("max-connections", strconv.Itoa(n), "write 1 or more")
		}
		o.MaxConnections = uint64(n)
	}
	if size := c.String("max-heap"); size != "" {
		if o.MaxHeap = bytesOf(size); o.MaxHeap == 0 {
			return o, v.invalid("max-heap", size, "write a size such as 512MiB or 2GiB")
		}
	}
	return o, nil
}

// localityParts returns the region, the zone and the sub-zone of --node-locality, in front.
func localityParts(v values, locality string) ([]string, error) {
	parts := append(strings.Split(locality, "/"), "", "")
	if len(parts) > 5 {
		return nil, v.invalid("node-locality", locality, "write REGION, REGION/ZONE or REGION/ZONE/SUB-ZONE")
	}
	return parts, nil
}

// pairs returns what a flag says that is given as KEY=VALUE, any number of times.
func pairs(v values, flag, form string) (map[string]string, error) {
	all := make(map[string]string)
	for _, text := range v.c.StringSlice(flag) {
		key, value, ok := strings.Cut(text, "=")
		_, twice := all[key]
		switch {
		case !ok || key == "":
			return nil, v.invalid(flag, text, "write "+form)
		case twice:
			return nil, v.invalid(flag, text, key+" is given twice")
		}
		all[key] = value
	}
	return all, nil
}

// bytesOf returns a size of memory in bytes; 0 where it is none.
func bytesOf(size string) uint64 {
	number, unit, bits := size, uint64(1), 64
	for suffix, bytes := range map[string]uint64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30} {
		if before, ok := strings.CutSuffix(size, suffix); ok {
			number, unit, bits = before, bytes, 32
		}
	}
	n, err := strconv.ParseUint(number, 10, bits)
	if err != nil {
		return 0
	}
	return n * unit
}

// readFiles completes the options of an Envoy that reads the output directory.
func readFiles(c *cli.Context, o *bootstrap.EnvoyOptions) error {
	for _, name := range []string{"server", "tls-ca", "tls-server-name", "tls-cert", "tls-key"} {
		if c.IsSet(name) {
			return usagef("--%s is for a server: choose a --transport, %s", name, strings.Join(transportNames()[1:], ", "))
		}
	}
	if c.NArg() > 0 && !c.IsSet("target") {
		return usagef("bootstrap envoy takes no argument for files: write --out DIR for the output directory")
	}
	if c.Path("out") == "" {
		return usagef("--out is required: see %s", helpFor("bootstrap envoy"))
	}
	v, err := valuesOfTarget(c)
	if err != nil {
		return err
	}
	out := value(v, "out", c.Path)
	m, err := publish.ReadManifest(out)
	if err != nil {
		return err
	}
	if m.Layout == 0 { // or the name is misspelt
		fmt.Fprintf(c.App.ErrWriter, "xdspub: nothing is published in %s yet. Run xdspub render first: Envoy exits if these files are missing.\n", out)
	}
	for _, t := range xds.Entrypoints {
		if m.Layout != 0 && m.Resources[t.API] == 0 {
			o.Unpublished = append(o.Unpublished, t)
		}
	}
	format, err := publishedFormat(v, out, m)
	if err != nil {
		return err
	}
	o.Dir, o.Format, o.PollInterval = value(v, "envoy-path", c.String), format.Name, c.Duration("poll-interval")
	switch {
	case o.Dir == "" && m.EnvoyPath == "": // nothing was published yet
		o.Dir = published.DefaultEnvoyPath(out)
	case o.Dir == "":
		o.Dir = m.EnvoyPath
	case m.EnvoyPath != "" && filepath.Clean(o.Dir) != m.EnvoyPath:
		return usagef("invalid --envoy-path %q: the files in %s were published with --envoy-path %s", o.Dir, out, m.EnvoyPath)
	}
	layers, err := published.RuntimeLayers(out, format)
	if err != nil {
		return err
	}
	for _, name := range layers {
		o.RuntimeLayers = append(o.RuntimeLayers, bootstrap.RuntimeLayer{Name: name, Folder: render.Folder(name)})
	}
	return nil
}

// publishedFormat returns the format of the output directory, or the one to come where
// nothing was published yet.
func publishedFormat(v values, out string, m publish.Manifest) (*render.Format, error) {
	asked := value(v, "format", v.c.String)
	if asked != "" && m.Format != "" && asked != m.Format {
		return nil, usagef("invalid --format %q: the files in %s were published with --format %s", asked, out, m.Format)
	}
	name := cmp.Or(asked, m.Format, render.JSON.Name)
	format := render.FormatNamed(name)
	if format == nil {
		return nil, v.invalid("format", name, oneOf(formatNames(), name))
	}
	return format, nil
}

// connect completes the options of an Envoy that connects to a server.
func connect(v values, o *bootstrap.EnvoyOptions) (err error) {
	c := v.c
	for _, name := range []string{"out", "envoy-path", "format", "poll-interval"} {
		if c.IsSet(name) {
			return usagef("--%s is for --transport file: by %s Envoy reads no published files", name, o.Transport)
		}
	}
	server := c.String("server")
	if server == "" {
		return usagef("--server is required for --transport %s: see %s", o.Transport, helpFor("bootstrap envoy"))
	}
	o.Server.Cluster = c.String("xds-cluster")
	if o.Server.Address, err = addr.Parse(server); err != nil {
		return v.invalid("server", server, "write HOST:PORT or unix:PATH")
	}
	if o.Server.Address.Network == "unix" {
		if o.Server.Address.Name, err = filepath.Abs(o.Server.Address.Name); err != nil {
			return err
		}
	}
	if o.Server.TLS, err = serverTLS(c); err != nil {
		return err
	}
	if c.NArg() == 0 {
		return nil
	}
	o.RuntimeLayers, err = servedLayers(c)
	return err
}

// serverTLS returns how Envoy connects by TLS, nil where it does not.
func serverTLS(c *cli.Context) (*bootstrap.TLS, error) {
	if !c.IsSet("tls-ca") {
		for _, name := range []string{"tls-server-name", "tls-cert", "tls-key"} {
			if c.IsSet(name) {
				return nil, usagef("--%s needs --tls-ca: without it Envoy connects without TLS", name)
			}
		}
		return nil, nil
	}
	if (c.Path("tls-cert") == "") != (c.Path("tls-key") == "") {
		return nil, usagef("--tls-cert and --tls-key belong together: give both")
	}
	output := c.Path("output")
	if output == "-" {
		return nil, usagef("--tls-ca needs --output FILE: Envoy reads certificates again only by files of their own, which are written beside it")
	}
	t := &bootstrap.TLS{CA: c.Path("tls-ca"), Cert: c.Path("tls-cert"), Key: c.Path("tls-key"), Name: c.String("tls-server-name"), Prefix: strings.TrimSuffix(output, filepath.Ext(output))}
	for _, path := range []*string{&t.CA, &t.Cert, &t.Key, &t.Prefix} {
		if *path == "" {
			continue
		}
		var err error
		if *path, err = filepath.Abs(*path); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// servedLayers returns the runtime layers of the source tree that is served.
func servedLayers(c *cli.Context) (layers []bootstrap.RuntimeLayer, err error) {
	source, err := oneArgument(c, "SRC")
	if err != nil {
		return nil, err
	}
	v, o, err := settingsAndSource(c, source, check.Streams)
	if err != nil {
		return nil, err
	}
	if c.IsSet("target") {
		t, err := oneTarget(v)
		if err != nil {
			return nil, err
		}
		o.Client = &t.client
	}
	o.Bootstrap = cmp.Or(o.Bootstrap, c.Path("from"))
	checked, err := check.Once(c.Context, o)
	if err != nil {
		return nil, err
	}
	refused := checked.Invalid(value(v, "warnings-as-errors", c.Bool))
	printFindings(c, checked, refused)
	if refused {
		return nil, &exit{status: exitRefused}
	}
	for _, r := range checked.Snapshot.Of(xds.Runtime) {
		layers = append(layers, bootstrap.RuntimeLayer{Name: r.Name})
	}
	return layers, nil
}
