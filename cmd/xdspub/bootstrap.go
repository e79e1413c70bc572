package main

import (
	"path/filepath"

	"github.com/urfave/cli/v2"

	"xdspub/bootstrap"
	"xdspub/pipeline"
	"xdspub/publish"
	"xdspub/render"
)

func bootstrapCommand() *cli.Command {
	return &cli.Command{
		Name:  "bootstrap",
		Usage: "write a bootstrap for a client",
		Subcommands: []*cli.Command{{
			Name:  "envoy",
			Usage: "write the bootstrap of an Envoy that reads the output directory to standard output",
			Flags: []cli.Flag{
				&cli.StringFlag{Name: "out", EnvVars: env("out"), Usage: "output `DIR` of render or watch"},
				&cli.StringFlag{Name: "envoy-path", EnvVars: env("envoy-path"), Usage: "the output directory as Envoy sees it (default: as it was published)"},
				&cli.StringFlag{Name: "admin", EnvVars: env("admin"), Value: "127.0.0.1:9901", Usage: "Envoy's admin address, `HOST:PORT` or unix:PATH"},
				&cli.StringFlag{Name: "node-id", EnvVars: env("node-id"), Value: "envoy", Usage: "node `ID`"},
				&cli.StringFlag{Name: "node-cluster", EnvVars: env("node-cluster"), Value: "envoy", Usage: "node cluster `NAME`"},
			},
			Action: bootstrapEnvoy,
		}},
		Action: func(c *cli.Context) error {
			return usagef("bootstrap wants a client: envoy")
		},
	}
}

func bootstrapEnvoy(c *cli.Context) error {
	if c.NArg() > 0 {
		return usagef("bootstrap envoy wants no arguments, the output directory is --out")
	}
	out := c.String("out")
	if out == "" {
		return usagef("--out is required: see xdspub bootstrap envoy --help")
	}
	m, err := publish.ReadManifest(out)
	if err != nil {
		return err
	}
	o := bootstrap.EnvoyOptions{Dir: c.String("envoy-path"), Format: m.Format, NodeID: c.String("node-id"), NodeCluster: c.String("node-cluster"), Admin: c.String("admin")}
	if o.Format == "" {
		o.Format = "json"
	}
	if o.Dir == "" {
		o.Dir = m.EnvoyPath
	}
	if o.Dir == "" { // nothing was published yet
		if o.Dir, err = filepath.Abs(out); err != nil {
			return err
		}
	}
	layers, err := pipeline.RuntimeLayers(out)
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
