package main

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"xdspub/diag"
	"xdspub/load"
	"xdspub/pipeline"
)

// Every flag can be set by an environment variable XDSPUB_<NAME> and in
// xdspub.yaml too: flags win, then the environment, then the file.

func env(flag string) []string {
	return []string{"XDSPUB_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))}
}

// sourceFlags say how a source tree is read and judged.
func sourceFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "config", EnvVars: env("config"), Usage: "settings `FILE` (default: xdspub.yaml in the source tree)"},
		&cli.StringSliceFlag{Name: "ignore", EnvVars: env("ignore"), Usage: "glob `PATTERN` of files in the tree that are no resources"},
		&cli.StringFlag{Name: "bootstrap", EnvVars: env("bootstrap"), Usage: "Envoy's own bootstrap `FILE`: its static resources count as known"},
		&cli.StringSliceFlag{Name: "disable", EnvVars: env("disable"), Usage: "leave out the validation `RULE`"},
		&cli.BoolFlag{Name: "warnings-as-errors", EnvVars: env("warnings-as-errors"), Usage: "refuse what has warnings"},
		&cli.BoolFlag{Name: "allow-empty", EnvVars: env("allow-empty"), Usage: "take a tree without resources as what is wanted"},
	}
}

// publishFlags say how and where a Snapshot is published.
func publishFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "out", EnvVars: env("out"), Usage: "output `DIR`, which Envoy reads"},
		&cli.StringFlag{Name: "envoy-path", EnvVars: env("envoy-path"), Usage: "the output directory as Envoy sees it, an absolute `DIR` (default: --out)"},
		&cli.StringFlag{Name: "format", EnvVars: env("format"), Value: "json", Usage: "`FORMAT` of the published files: json"},
		&cli.StringFlag{Name: "eds", EnvVars: env("eds"), Value: "auto", Usage: "where endpoints go, `file|inline|auto`: auto starts with files and goes inline past the inotify budget"},
		&cli.IntFlag{Name: "inotify-budget", EnvVars: env("inotify-budget"), Value: 120, Usage: "path subscriptions that Envoy can hold, `N`; halve it for hot restart"},
		&cli.DurationFlag{Name: "step-gap", EnvVars: env("step-gap"), Value: time.Second, Usage: "`TIME` between the steps of a change"},
		&cli.DurationFlag{Name: "trim-delay", EnvVars: env("trim-delay"), Value: 10 * time.Minute, Usage: "`TIME` that a removed cluster stays for connections that drain"},
		&cli.StringFlag{Name: "group", EnvVars: env("group"), Usage: "`GROUP` that may read secret files (default: the output directory's)"},
	}
}

// options are the pipeline's options as the flags of c say.
func options(c *cli.Context, source string, log *slog.Logger) (pipeline.Options, error) {
	o := pipeline.Options{
		Source: source, Ignore: c.StringSlice("ignore"), AllowEmpty: c.Bool("allow-empty"),
		Bootstrap: c.String("bootstrap"), Disable: c.StringSlice("disable"), Log: log,
	}
	for _, code := range o.Disable {
		if !slices.ContainsFunc(ruleCodes(), func(r diag.Code) bool { return r.Name == code }) {
			return o, usagef("--disable %s: there is no such rule: see xdspub rules", code)
		}
	}
	if c.Command.Name == "validate" {
		return o, nil
	}
	o.Out, o.EnvoyPath, o.Format = c.String("out"), c.String("envoy-path"), c.String("format")
	o.Endpoints, o.InotifyBudget = pipeline.EndpointsMode(c.String("eds")), c.Int("inotify-budget")
	o.StepGap, o.TrimDelay = c.Duration("step-gap"), c.Duration("trim-delay")
	switch {
	case o.Out == "":
		return o, usagef("--out is required: see xdspub %s --help", c.Command.Name)
	case o.EnvoyPath != "" && !strings.HasPrefix(o.EnvoyPath, "/"):
		return o, usagef("--envoy-path %q is not absolute", o.EnvoyPath)
	case o.Format != "json":
		return o, usagef("--format %q: this version writes json", o.Format)
	case o.Endpoints != pipeline.EndpointsAuto && o.Endpoints != pipeline.EndpointsFile && o.Endpoints != pipeline.EndpointsInline:
		return o, usagef("--eds %q is none of file, inline, auto", o.Endpoints)
	case o.InotifyBudget < 2:
		return o, usagef("--inotify-budget %d: CDS and LDS alone need 2", o.InotifyBudget)
	case o.StepGap < 0 || o.TrimDelay < 0:
		return o, usagef("--step-gap and --trim-delay can't be negative")
	}
	return o, nil
}

// settle takes over what the settings file says and no flag or variable does.
func settle(c *cli.Context, source string) error {
	path, wanted := c.String("config"), true
	if path == "" {
		path, wanted = load.ConfigFile(source), false
	}
	settings, findings, err := load.Config(path)
	if !wanted && (errors.Is(err, fs.ErrNotExist) || isNotDir(err)) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(findings) > 0 {
		if err := diag.WriteText(c.App.ErrWriter, findings, diag.TextOptions{}); err != nil {
			return err
		}
		return &exit{status: exitUsage}
	}
	for _, s := range settings {
		if !isFlag(c.App.Commands, s.Name) {
			return usagef("%s: unknown setting %q: settings are named like flags", s.Position, s.Name)
		}
		if c.IsSet(s.Name) || !slices.ContainsFunc(c.Command.Flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), s.Name) }) {
			continue
		}
		for _, v := range s.Values {
			if err := c.Set(s.Name, v); err != nil {
				return usagef("%s: %s: %v", s.Position, s.Name, err)
			}
		}
	}
	return nil
}

func isNotDir(err error) bool {
	info, statErr := os.Stat(err.(*fs.PathError).Path)
	return statErr != nil || !info.Mode().IsRegular()
}

// isFlag tells whether some command has that flag: one file serves them all.
func isFlag(commands []*cli.Command, name string) bool {
	for _, c := range commands {
		if isFlag(c.Subcommands, name) || slices.ContainsFunc(c.Flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) && name != "config" && name != "help" }) {
			return true
		}
	}
	return false
}
