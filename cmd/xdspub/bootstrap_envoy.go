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
	"xdspub/cmd/settings"
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
		Description: `Prints a bootstrap that subscribes Envoy to clusters, listeners and runtime layers: in the files of
--out, or by another --transport from a server. If the bootstrap changes, restart Envoy.

Files: publish before Envoy starts, since Envoy exits if a file of its bootstrap is missing. With
--target, SRC is the source tree whose settings have the target, and the files are in the folder of the
target below --out.

Server: SRC is the source tree that the server serves; the bootstrap gets the runtime layers of SRC. The
command takes the options and settings by which serve reads SRC. Without --bootstrap, the tree may
refer to the bootstrap of --from.

Examples:
  xdspub bootstrap envoy --out /var/lib/xds > envoy.yaml
  xdspub bootstrap envoy --out /var/lib/xds --envoy-path /xds --admin unix:/run/envoy.sock
  xdspub bootstrap envoy --transport delta-ads --server unix:/run/xds.sock config/ > envoy.yaml
  xdspub bootstrap envoy --transport delta-ads --server xds.example:18000 --tls-ca ca.pem \
    --tls-cert edge.pem --tls-key edge.key --output /etc/envoy/envoy.yaml config/

Exit status: 0 written, 1 errors in the bootstrap or in SRC, 2 wrong usage, 3 could not run.`,
		Flags:  options(settings.BootstrapEnvoy()),
		Action: action(bootstrapEnvoy),
	}
}

func bootstrapEnvoy(c *call) error {
	if err := noSourceFlags(c); err != nil {
		return err
	}
	o, err := envoyOptions(c)
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
		err = connect(c, &o)
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

// readBase reads the file of --from; nil without --from. The node and the admin interface of the file replace
// the defaults of options in o.
func readBase(c *call, o *bootstrap.EnvoyOptions) (*bootstrap.Base, error) {
	name := c.From.Value
	if !c.From.Given() {
		return nil, nil
	}
	of, err := c.withTypes()
	if err != nil {
		return nil, err
	}
	in, err := load.Open(name)
	in.Envoy = in.Envoy.With(of.Types.Registry)
	switch {
	case err != nil:
		return nil, err
	case in.Format != "yaml" && in.Format != "json":
		return nil, usagef("invalid --from %q: a base is written in YAML or JSON, not in the format %s of this suffix", name, in.Format)
	}
	base, result := bootstrap.Read(in)
	checked := &check.Result{Line: result.Line}
	checked.Add(result.Diagnostics)
	if base == nil {
		printFindings(c, checked, true)
		return nil, &exit{status: exitRefused}
	}
	node := base.Message.GetNode()
	if id := node.GetId(); id != "" && !c.NodeID.Given() {
		o.NodeID = id
	}
	if cluster := node.GetCluster(); cluster != "" && !c.NodeCluster.Given() {
		o.NodeCluster = cluster
	}
	if base.Message.GetAdmin().GetAddress() != nil && !c.Admin.Given() {
		o.Admin = ""
	}
	return base, nil
}

// envoyText returns the bootstrap, merged into the base.
func envoyText(c *call, o bootstrap.EnvoyOptions, base *bootstrap.Base) (text []byte, err error) {
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

// judgeBootstrap judges the text of a bootstrap. A finding that the base has too gets its position in the base.
func judgeBootstrap(c *call, draft load.Input, base *bootstrap.Base) (*check.Result, error) {
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

// writeBootstrap judges the text of a bootstrap, and writes it and its files of secrets if there is no error.
func writeBootstrap(c *call, text []byte, base *bootstrap.Base, secrets []bootstrap.SecretFile) error {
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
	if c.Envoy.Given() {
		if err := askEnvoy(c, draft, secrets); err != nil {
			return err
		}
	}
	for _, s := range secrets {
		if err := replaceFile(s.Path, s.Data, 0o644); err != nil {
			return err
		}
	}
	return replaceOutput(c, text, modeOf(c.Output.Value, c.From.Value))
}

// outputName returns the name of --output for findings.
func outputName(c *call) string {
	if output := c.Output.Value; output != "-" {
		return output
	}
	return "<stdout>"
}

// replaceOutput writes a text into the file of --output, or to standard output.
func replaceOutput(c *call, text []byte, mode os.FileMode) error {
	if output := c.Output.Value; output != "-" {
		return replaceFile(output, text, mode)
	}
	_, err := c.App.Writer.Write(text)
	return err
}

// modeOf returns the mode for a bootstrap: the mode of the file output if it exists, otherwise the mode of its
// base, because a bootstrap may hold keys, otherwise 0644.
func modeOf(output, from string) os.FileMode {
	for _, name := range []string{output, from} {
		if info, err := os.Stat(name); err == nil {
			return info.Mode().Perm()
		}
	}
	return 0o644
}

// replaceFile replaces a file by data with the given mode. After an error the file is unchanged, or absent.
func replaceFile(name string, data []byte, mode os.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // in case the rename failed
	_, err = f.Write(data)
	if err := errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

// envoyOptions returns the options of a bootstrap, without the options about files and servers.
func envoyOptions(c *call) (o bootstrap.EnvoyOptions, err error) {
	o = bootstrap.EnvoyOptions{
		Transport: bootstrap.Transport(c.Transport.Value),
		NodeID:    c.NodeID.Value, NodeCluster: c.NodeCluster.Value, Admin: c.Admin.Value,
	}
	if err := cmp.Or(c.Transport.Check(), c.AdminPaths.Check()); err != nil {
		return o, err
	}
	o.LimitAdmin = c.AdminPaths.Value == settings.NeededAdminPaths
	if locality := c.NodeLocality.Value; locality != "" {
		parts, err := localityParts(c, locality)
		if err != nil {
			return o, err
		}
		o.Region, o.Zone, o.SubZone = parts[0], parts[1], parts[2]
	}
	if o.Metadata, err = pairs(c.NodeMetadata, "KEY=VALUE"); err != nil {
		return o, err
	}
	if o.StatsTags, err = pairs(c.StatsTag, "NAME=VALUE"); err != nil {
		return o, err
	}
	if n := c.MaxConnections.Value; c.MaxConnections.Given() {
		if n < 1 {
			return o, c.MaxConnections.Invalid(strconv.Itoa(n), "write 1 or more")
		}
		o.MaxConnections = uint64(n)
	}
	if size := c.MaxHeap.Value; size != "" {
		if o.MaxHeap = bytesOf(size); o.MaxHeap == 0 {
			return o, c.MaxHeap.Invalid(size, "write a size such as 512MiB or 2GiB")
		}
	}
	return o, nil
}

// localityParts returns the region, the zone and the sub-zone of --node-locality as the first three elements;
// empty if absent.
func localityParts(v *call, locality string) ([]string, error) {
	parts := append(strings.Split(locality, "/"), "", "")
	if len(parts) > 5 {
		return nil, v.NodeLocality.Invalid(locality, "write REGION, REGION/ZONE or REGION/ZONE/SUB-ZONE")
	}
	return parts, nil
}

// pairs returns the values KEY=VALUE of a setting as a map. form is the form of a value for the error.
func pairs(given settings.Value[[]string], form string) (map[string]string, error) {
	all := make(map[string]string)
	for _, text := range given.Value {
		key, value, ok := strings.Cut(text, "=")
		_, twice := all[key]
		switch {
		case !ok || key == "":
			return nil, given.Invalid(text, "write "+form)
		case twice:
			return nil, given.Invalid(text, key+" is given twice")
		}
		all[key] = value
	}
	return all, nil
}

// bytesOf returns a size of memory in bytes; 0 for a malformed size.
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

// readFiles sets the options of an Envoy that reads the output directory.
func readFiles(c *call, o *bootstrap.EnvoyOptions) error {
	for _, is := range []settings.Origin{c.Server.Origin, c.TLSCA.Origin, c.TLSServerName.Origin, c.TLSCert.Origin, c.TLSKey.Origin} {
		if is.Given() {
			return usagef("--%s is for a server: choose a --transport, %s", is.Name(), strings.Join(settings.TransportNames()[1:], ", "))
		}
	}
	if c.NArg() > 0 && !c.Target.Given() {
		return usagef("bootstrap envoy takes no argument for files: write --out DIR for the output directory")
	}
	if c.Out.Value == "" {
		return usagef("--out is required: see %s", helpFor("bootstrap envoy"))
	}
	v, err := valuesOfTarget(c)
	if err != nil {
		return err
	}
	out := v.Out.Value
	m, err := publish.ReadManifest(out)
	if err != nil {
		return err
	}
	if m.Layout == 0 { // before the first publish, or if --out is misspelt
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
	o.Dir, o.Format, o.PollInterval = v.EnvoyPath.Value, format.Name, c.PollInterval.Value
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

// publishedFormat returns the format of the files in the output directory. If nothing is published yet,
// publishedFormat returns the format of --format, or JSON.
func publishedFormat(v *call, out string, m publish.Manifest) (*render.Format, error) {
	asked := v.Format.Value
	if asked != "" && m.Format != "" && asked != m.Format {
		return nil, usagef("invalid --format %q: the files in %s were published with --format %s", asked, out, m.Format)
	}
	name := cmp.Or(asked, m.Format, render.JSON.Name)
	format := render.FormatNamed(name)
	if format == nil {
		return nil, v.Format.Invalid(name, settings.OneOf(settings.FormatNames(), name))
	}
	return format, nil
}

// connect sets the options of an Envoy that connects to a server.
func connect(c *call, o *bootstrap.EnvoyOptions) (err error) {
	for _, is := range []settings.Origin{c.Out.Origin, c.EnvoyPath.Origin, c.Format.Origin, c.PollInterval.Origin} {
		if is.Given() {
			return usagef("--%s is for --transport file: by %s Envoy reads no published files", is.Name(), o.Transport)
		}
	}
	server := c.Server.Value
	if server == "" {
		return usagef("--server is required for --transport %s: see %s", o.Transport, helpFor("bootstrap envoy"))
	}
	o.Server.Cluster = c.XDSCluster.Value
	if o.Server.Address, err = addr.Parse(server); err != nil {
		return c.Server.Invalid(server, "write HOST:PORT or unix:PATH")
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

// serverTLS returns how Envoy connects by TLS; nil if it connects without TLS.
func serverTLS(c *call) (*bootstrap.TLS, error) {
	if !c.TLSCA.Given() {
		for _, is := range []settings.Origin{c.TLSServerName.Origin, c.TLSCert.Origin, c.TLSKey.Origin} {
			if is.Given() {
				return nil, usagef("--%s needs --tls-ca: without it Envoy connects without TLS", is.Name())
			}
		}
		return nil, nil
	}
	if (c.TLSCert.Value == "") != (c.TLSKey.Value == "") {
		return nil, usagef("--tls-cert and --tls-key belong together: give both")
	}
	output := c.Output.Value
	if output == "-" {
		return nil, usagef("--tls-ca needs --output FILE: bootstrap envoy writes further files beside FILE, by which Envoy notices changed certificates")
	}
	t := &bootstrap.TLS{
		CA: c.TLSCA.Value, Cert: c.TLSCert.Value, Key: c.TLSKey.Value, Name: c.TLSServerName.Value,
		Prefix: strings.TrimSuffix(output, filepath.Ext(output)),
	}
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

// servedLayers checks the source tree that a server serves, and returns its runtime layers.
func servedLayers(c *call) (layers []bootstrap.RuntimeLayer, err error) {
	source, err := oneArgument(c, "SRC")
	if err != nil {
		return nil, err
	}
	v, o, err := settingsAndSource(c, source, check.Streams)
	if err != nil {
		return nil, err
	}
	if c.Target.Given() {
		t, err := oneTarget(v)
		if err != nil {
			return nil, err
		}
		o.Client = &t.Client
	}
	o.Bootstrap = cmp.Or(o.Bootstrap, c.From.Value)
	checked, err := check.Once(c.Context, o)
	if err != nil {
		return nil, err
	}
	refused := checked.Invalid(v.WarningsAsErrors.Value)
	printFindings(c, checked, refused)
	if refused {
		return nil, &exit{status: exitRefused}
	}
	for _, r := range checked.Snapshot.Of(xds.Runtime) {
		layers = append(layers, bootstrap.RuntimeLayer{Name: r.Name})
	}
	return layers, nil
}
