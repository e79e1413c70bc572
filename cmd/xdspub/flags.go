package main

import (
	"cmp"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"xdspub/controller"
	"xdspub/diag"
	"xdspub/envoy"
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
		&cli.StringSliceFlag{Name: "allow-path", EnvVars: env("allow-path"), Usage: "`DIR` outside the tree that its links and relative paths may lead into"},
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

// confirmFlags say which Envoys confirm what is published.
func confirmFlags() []cli.Flag {
	return []cli.Flag{
		envoyAdminFlag(),
		&cli.StringSliceFlag{Name: "envoy-log", EnvVars: env("envoy-log"), Usage: "`FILE` that such an Envoy logs to, for its words when it refuses something; with Envoy's --log-path, give it --file-flush-interval-msec 100"},
		&cli.StringFlag{Name: "ack-quorum", EnvVars: env("ack-quorum"), Value: envoy.Quorum{}.String(), Usage: "how many of the Envoys that answer must take a step in, `all|any|N`"},
		&cli.DurationFlag{Name: "ack-timeout", EnvVars: env("ack-timeout"), Value: 15 * time.Second, Usage: "`TIME` that Envoys have to take a step in; then it counts as unconfirmed and the change goes on"},
		&cli.DurationFlag{Name: "warm-timeout", EnvVars: env("warm-timeout"), Value: 30 * time.Second, Usage: "`TIME` that new clusters have to get warm before something uses them"},
	}
}

func envoyAdminFlag() cli.Flag {
	return &cli.StringSliceFlag{Name: "envoy-admin", EnvVars: env("envoy-admin"), Usage: "`URL` of the admin interface of an Envoy that reads the output directory: http://HOST:PORT or unix:PATH"}
}

func retryHeldFlag() cli.Flag {
	return &cli.BoolFlag{Name: "retry-held", EnvVars: env("retry-held"), Usage: "try once more what Envoy refused", DisableDefaultText: true}
}

// watchFlags say when a source tree is looked at.
func watchFlags() []cli.Flag {
	return []cli.Flag{
		&cli.DurationFlag{Name: "quiet-period", EnvVars: env("quiet-period"), Value: 100 * time.Millisecond, Usage: "a change is taken up once the tree was quiet for `TIME`, or after 2s; that of one file, on Linux, once the file is whole"},
		&cli.DurationFlag{Name: "rescan", EnvVars: env("rescan"), Value: 30 * time.Second, Usage: "look at the whole tree every `TIME` even without an event, or less often where that costs more than a thousandth of a core"},
		&cli.DurationFlag{Name: "poll", EnvVars: env("poll"), Usage: "look for changes every `TIME` instead of waiting for events: for network file systems (0: off)"},
	}
}

// sourceOptions returns the pipeline's options for reading and judging.
func sourceOptions(v values, source string) (pipeline.Options, error) {
	o := pipeline.Options{
		Source: source, Ignore: value(v, "ignore", v.c.StringSlice), Allow: value(v, "allow-path", v.c.StringSlice), AllowEmpty: value(v, "allow-empty", v.c.Bool),
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

// publishOptions returns the options for all stages.
func publishOptions(v values, source string, log *slog.Logger) (controller.Options, error) {
	of, err := sourceOptions(v, source)
	o := controller.Options{Options: of, Group: value(v, "group", v.c.String), WarningsAsErrors: value(v, "warnings-as-errors", v.c.Bool)}
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
	o.Envoys, err = fleet(v, o.Options)
	return o, err
}

// fleet returns the Envoys that flags name, nil where they name none.
func fleet(v values, o pipeline.Options) (*envoy.Fleet, error) {
	quorum, err := envoy.ParseQuorum(value(v, "ack-quorum", v.c.String))
	if err != nil {
		return nil, usagef("--ack-quorum: %v", err)
	}
	f := envoy.FleetOptions{
		Quorum: quorum, Dir: cmp.Or(o.EnvoyPath, pipeline.DefaultEnvoyPath(o.Out)), Log: o.Log,
		AckTimeout: value(v, "ack-timeout", v.c.Duration), WarmTimeout: value(v, "warm-timeout", v.c.Duration),
	}
	if f.AckTimeout <= 0 || f.WarmTimeout <= 0 {
		return nil, usagef("--ack-timeout and --warm-timeout must be above 0")
	}
	for _, file := range value(v, "envoy-log", v.c.StringSlice) {
		f.Logs = append(f.Logs, envoy.NewLog(file))
	}
	if f.Admins, err = admins(value(v, "envoy-admin", v.c.StringSlice)); err != nil {
		return nil, err
	}
	if len(f.Admins) == 0 {
		if len(f.Logs) > 0 {
			return nil, usagef("--envoy-log says why Envoy refuses something, and only --envoy-admin tells that it does")
		}
		return nil, nil
	}
	if !quorum.Within(len(f.Admins)) {
		return nil, usagef("--ack-quorum %s is more than there are of --envoy-admin: %d", quorum, len(f.Admins))
	}
	return envoy.NewFleet(f), nil
}

// admins returns those that --envoy-admin names. One that is named twice would count twice
// in a quorum.
func admins(urls []string) ([]*envoy.Admin, error) {
	var list []*envoy.Admin
	named := make(map[string]bool)
	for _, url := range urls {
		key := strings.TrimSuffix(url, "/")
		if named[key] {
			return nil, usagef("--envoy-admin %s is given twice", url)
		}
		named[key] = true
		admin, err := envoy.NewAdmin(url)
		if err != nil {
			return nil, usagef("--envoy-admin: %v", err)
		}
		list = append(list, admin)
	}
	return list, nil
}

// formatNamed returns the format of published files that a flag names.
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
