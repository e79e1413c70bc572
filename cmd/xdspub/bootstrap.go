package main

import (
	"cmp"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"xdspub/bootstrap"
	"xdspub/publish"
	"xdspub/published"
	"xdspub/render"
)

func bootstrapCommand() *cli.Command {
	return &cli.Command{
		Name:  "bootstrap",
		Usage: "write a bootstrap for a client of the published files",
		Subcommands: []*cli.Command{{
			Name:  "envoy",
			Usage: "write the bootstrap of an Envoy that reads the output directory",
			Description: `Prints a bootstrap that subscribes Envoy to the published clusters, listeners and runtime layers.
Publish before Envoy starts: it exits if a file of its bootstrap is missing. Print it again, and
restart Envoy, after a change of --format, of the path, or of the names of runtime layers.

Examples:
  xdspub bootstrap envoy --out /var/lib/xds > envoy.yaml
  xdspub bootstrap envoy --out /var/lib/xds --envoy-path /xds --admin unix:/run/envoy.sock`,
			Flags: []cli.Flag{
				&cli.PathFlag{Name: "out", EnvVars: env("out"), Usage: "output `DIR` of render or watch (required)"},
				&cli.StringFlag{Name: "envoy-path", EnvVars: env("envoy-path"), Usage: "absolute path of the output `DIR` as Envoy sees it (default: as it was published)"},
				&cli.StringFlag{Name: "format", EnvVars: env("format"), Usage: "format of the published files: `" + strings.Join(formatNames(), "|") + "` (default: as they were published, else " + render.JSON.Name + ")"},
				&cli.StringFlag{Name: "admin", EnvVars: env("admin"), Value: "127.0.0.1:9901", Usage: "Envoy's admin address, `IP:PORT` or unix:PATH"},
				&cli.StringFlag{Name: "node-id", EnvVars: env("node-id"), Value: "envoy", Usage: "node `ID` of this Envoy"},
				&cli.StringFlag{Name: "node-cluster", EnvVars: env("node-cluster"), Value: "envoy", Usage: "node cluster `NAME` of this Envoy"},
			},
			Action: bootstrapEnvoy,
		}},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return usagef("unknown client %q: use envoy", c.Args().First())
			}
			return usagef("bootstrap needs a client, and envoy is the only one: see %s", helpFor("bootstrap"))
		},
	}
}

func bootstrapEnvoy(c *cli.Context) error {
	if c.NArg() > 0 {
		return usagef("bootstrap envoy takes no arguments: write --out DIR for the output directory")
	}
	out := c.Path("out")
	if out == "" {
		return usagef("--out is required: see %s", helpFor("bootstrap envoy"))
	}
	m, err := publish.ReadManifest(out)
	if err != nil {
		return err
	}
	format, err := publishedFormat(c, m)
	if err != nil {
		return err
	}
	o := bootstrap.EnvoyOptions{Dir: c.String("envoy-path"), Format: format.Name, NodeID: c.String("node-id"), NodeCluster: c.String("node-cluster"), Admin: c.String("admin")}
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
	text, err := bootstrap.Envoy(o)
	if err != nil {
		return &exit{exitUsage, err}
	}
	_, err = c.App.Writer.Write(text)
	return err
}

// publishedFormat returns the format of the output directory, or the one to come where
// nothing was published yet.
func publishedFormat(c *cli.Context, m publish.Manifest) (*render.Format, error) {
	asked := c.String("format")
	if asked != "" && m.Format != "" && asked != m.Format {
		return nil, usagef("invalid --format %q: the files in %s were published with --format %s", asked, c.Path("out"), m.Format)
	}
	name := cmp.Or(asked, m.Format, render.JSON.Name)
	format := render.FormatNamed(name)
	if format == nil {
		return nil, values{c: c}.invalid("format", name, oneOf(formatNames()))
	}
	return format, nil
}
