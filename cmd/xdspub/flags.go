package main

import (
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"xdspub/diag"
	"xdspub/pipeline"
	"xdspub/render"
)

// env names the environment variable of a flag: XDSPUB_<NAME>.
func env(flag string) []string {
	return []string{"XDSPUB_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))}
}

// sourceFlags say how a source tree is read and judged.
func sourceFlags() []cli.Flag {
	return []cli.Flag{
		&cli.PathFlag{Name: "config", EnvVars: env("config"), Usage: "settings `FILE` (default: xdspub.yaml in the source tree)"},
		&cli.StringSliceFlag{Name: "ignore", EnvVars: env("ignore"), Usage: "glob `PATTERN` of files in the tree that are no resources"},
		&cli.PathFlag{Name: "bootstrap", EnvVars: env("bootstrap"), Usage: "Envoy's own bootstrap `FILE`: its static resources count as known"},
		&cli.StringSliceFlag{Name: "disable", EnvVars: env("disable"), Usage: "leave out the validation `RULE`"},
		&cli.StringSliceFlag{Name: "enable", EnvVars: env("enable"), Usage: "take in the validation `RULE` that is off by default"},
		&cli.BoolFlag{Name: "warnings-as-errors", EnvVars: env("warnings-as-errors"), Usage: "refuse what has warnings", DisableDefaultText: true},
		&cli.BoolFlag{Name: "allow-empty", EnvVars: env("allow-empty"), Usage: "take a tree without resources as what is wanted", DisableDefaultText: true},
	}
}

// publishFlags say how and where a Snapshot is published.
func publishFlags() []cli.Flag {
	return []cli.Flag{
		&cli.PathFlag{Name: "out", EnvVars: env("out"), Usage: "output `DIR`, which Envoy reads"},
		&cli.StringFlag{Name: "envoy-path", EnvVars: env("envoy-path"), Usage: "the output directory as Envoy sees it, an absolute `DIR` (default: --out)"},
		&cli.StringFlag{Name: "format", EnvVars: env("format"), Value: render.JSON.Name, Usage: "format of the published files, `" + formatNames("|") + "`"},
		&cli.StringFlag{Name: "eds", EnvVars: env("eds"), Value: "auto", Usage: "where endpoints go, `file|inline|auto`: auto starts with files and goes inline past the inotify budget"},
		&cli.IntFlag{Name: "inotify-budget", EnvVars: env("inotify-budget"), Value: 120, Usage: "path subscriptions that Envoy can hold, `N`; halve it for hot restart"},
		&cli.DurationFlag{Name: "step-gap", EnvVars: env("step-gap"), Value: time.Second, Usage: "`TIME` between the steps of a change"},
		&cli.DurationFlag{Name: "trim-delay", EnvVars: env("trim-delay"), Value: 10 * time.Minute, Usage: "`TIME` that a removed cluster stays for connections that drain"},
		&cli.StringFlag{Name: "group", EnvVars: env("group"), Usage: "`GROUP` that may read secret files (default: the output directory's)"},
	}
}

// watchFlags say when a source tree is looked at.
func watchFlags() []cli.Flag {
	return []cli.Flag{
		&cli.DurationFlag{Name: "quiet-period", EnvVars: env("quiet-period"), Value: 100 * time.Millisecond, Usage: "a change is taken up once the tree was quiet for `TIME`, or after 2s"},
		&cli.DurationFlag{Name: "rescan", EnvVars: env("rescan"), Value: 30 * time.Second, Usage: "look at the whole tree every `TIME` even without an event"},
		&cli.DurationFlag{Name: "poll", EnvVars: env("poll"), Usage: "look for changes every `TIME` instead of waiting for events: for network file systems (0: off)"},
	}
}

// sourceOptions are the pipeline's options for reading and judging.
func sourceOptions(v values, source string) (pipeline.Options, error) {
	o := pipeline.Options{
		Source: source, Ignore: value(v, "ignore", v.c.StringSlice), AllowEmpty: value(v, "allow-empty", v.c.Bool),
		Bootstrap: value(v, "bootstrap", v.c.Path), Disable: value(v, "disable", v.c.StringSlice), Enable: value(v, "enable", v.c.StringSlice),
	}
	for _, pattern := range o.Ignore {
		if _, err := filepath.Match(pattern, ""); err != nil {
			return o, usagef("--ignore %q is not a glob pattern", pattern)
		}
	}
	for _, named := range []struct {
		flag  string
		codes []string
	}{{"disable", o.Disable}, {"enable", o.Enable}} {
		for _, code := range named.codes {
			if !slices.ContainsFunc(pipeline.RuleCodes(), func(r diag.Code) bool { return r.Name == code }) {
				return o, usagef("--%s %s: there is no such rule: see xdspub rules", named.flag, code)
			}
		}
	}
	return o, nil
}

// publishOptions are the pipeline's options for all stages.
func publishOptions(v values, source string, log *slog.Logger) (pipeline.Options, error) {
	o, err := sourceOptions(v, source)
	if err != nil {
		return o, err
	}
	o.Log = log
	o.Out, o.EnvoyPath = value(v, "out", v.c.Path), value(v, "envoy-path", v.c.String)
	if o.Format, err = formatNamed(value(v, "format", v.c.String)); err != nil {
		return o, err
	}
	o.Endpoints, o.InotifyBudget = pipeline.EndpointsMode(value(v, "eds", v.c.String)), value(v, "inotify-budget", v.c.Int)
	o.StepGap, o.TrimDelay = value(v, "step-gap", v.c.Duration), value(v, "trim-delay", v.c.Duration)
	switch {
	case o.Out == "":
		return o, usagef("--out is required: see %s", helpFor(v.c.Command.Name))
	case o.EnvoyPath != "" && !strings.HasPrefix(o.EnvoyPath, "/"):
		return o, usagef("--envoy-path %q is not absolute", o.EnvoyPath)
	case o.Endpoints != pipeline.EndpointsAuto && o.Endpoints != pipeline.EndpointsFile && o.Endpoints != pipeline.EndpointsInline:
		return o, usagef("--eds %q is none of file, inline, auto", o.Endpoints)
	case o.InotifyBudget < 2:
		return o, usagef("--inotify-budget %d: CDS and LDS alone need 2", o.InotifyBudget)
	case o.StepGap < 0 || o.TrimDelay < 0:
		return o, usagef("--step-gap and --trim-delay can't be negative")
	}
	return o, nil
}

// formatNamed is the format of published files that a flag names.
func formatNamed(name string) (*render.Format, error) {
	f := render.FormatNamed(name)
	if f == nil {
		return nil, usagef("--format %q is none of %s", name, formatNames(", "))
	}
	return f, nil
}

func formatNames(separator string) string {
	var names []string
	for _, f := range render.Formats {
		names = append(names, f.Name)
	}
	return strings.Join(names, separator)
}
