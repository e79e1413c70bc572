package main

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"xdspub/check"
	"xdspub/check/codes"
	"xdspub/diag"
	"xdspub/envoy"
	"xdspub/event"
	"xdspub/render"
	"xdspub/render/planner"
	"xdspub/render/published"
	"xdspub/watch"
	"xdspub/watch/pipeline"
	"xdspub/xds/quorum"
)

// sourceFlags say how a source tree is read and judged.
func sourceFlags() []cli.Flag {
	return []cli.Flag{
		&cli.PathFlag{Category: groupSource, Name: "config", EnvVars: env("config"), Usage: "read settings from `FILE` (default: xdspub.yaml in the source tree)"},
		&cli.StringSliceFlag{Category: groupSource, Name: "ignore", EnvVars: env("ignore"), Usage: "skip files and folders of the tree that match the glob `PATTERN`: by name, or, if it has a /, by path in the tree"},
		&cli.StringSliceFlag{Category: groupSource, Name: "allow-path", EnvVars: env("allow-path"), Usage: "allow links and relative paths of the tree to lead into `DIR`, which is outside of it"},
		&cli.PathFlag{Category: groupSource, Name: "bootstrap", EnvVars: env("bootstrap"), Usage: "Envoy's bootstrap `FILE`: resources of the tree may refer to its static resources"},
		descriptorSetFlag(),
		&cli.BoolFlag{Category: groupSource, Name: "allow-empty", EnvVars: env("allow-empty"), Usage: "allow a source tree with no resources; publishing it removes every listener and cluster from Envoy", DisableDefaultText: true},
		paramFlag(),
		&cli.StringSliceFlag{Category: groupRules, Name: "profile", EnvVars: env("profile"), Usage: "judge for clients of this kind: `" + strings.Join(check.Profiles(), "|") + "` (default: envoy-ads for serve and bootstrap envoy, grpc for bootstrap grpc, else envoy-file; envoy-file is always one with --out)"},
		&cli.StringSliceFlag{Category: groupRules, Name: "envoy-version", EnvVars: env("envoy-version"), Usage: "judge for Envoys of this version: `" + strings.Join(check.EnvoyReleases(), "|") + "`; if it is repeated, what one of them lacks is an error (default: the latest)"},
		&cli.StringSliceFlag{Category: groupRules, Name: "disable", EnvVars: env("disable"), Usage: "turn off `RULE`"},
		&cli.StringSliceFlag{Category: groupRules, Name: "enable", EnvVars: env("enable"), Usage: "turn on `RULE`, which is off by default"},
		&cli.BoolFlag{Category: groupRules, Name: "warnings-as-errors", EnvVars: env("warnings-as-errors"), Usage: "treat warnings as errors: exit status 1, and nothing is published", DisableDefaultText: true},
	}
}

// publishFlags say how and where a Snapshot is published.
func publishFlags() []cli.Flag {
	return []cli.Flag{
		&cli.PathFlag{Category: groupPublish, Name: "out", EnvVars: env("out"), Usage: "output `DIR`, which Envoy reads (required)"},
		&cli.StringFlag{Category: groupPublish, Name: "envoy-path", EnvVars: env("envoy-path"), Usage: "absolute path of the output `DIR` as Envoy sees it, such as the mount path in Envoy's container (default: that of --out)"},
		&cli.StringFlag{Category: groupPublish, Name: "format", EnvVars: env("format"), Value: render.JSON.Name, Usage: "format of the published files: `" + strings.Join(formatNames(), "|") + "`"},
		&cli.StringFlag{Category: groupPublish, Name: "eds", EnvVars: env("eds"), Value: "auto", Usage: "where endpoints of EDS clusters go: `file|inline|auto`; file: a file for each; inline: into the clusters; auto: files until they exceed --inotify-budget, inline from then on"},
		&cli.IntFlag{Category: groupPublish, Name: "inotify-budget", EnvVars: env("inotify-budget"), Value: 120, Usage: "number `N` of inotify instances that one Envoy may use, one for each file that it watches; halve it if you use hot restart"},
		pollIntervalFlag(groupPublish, "have Envoy read the files that listeners and clusters name every `TIME`, for file systems without events; these need no inotify instances; bootstrap envoy has the same option for the files of the bootstrap"),
		&cli.DurationFlag{Category: groupPublish, Name: "step-gap", EnvVars: env("step-gap"), Value: time.Second, Usage: "wait `TIME`, and --poll-interval, between the steps of a change that no Envoy acknowledges"},
		&cli.DurationFlag{Category: groupPublish, Name: "trim-delay", EnvVars: env("trim-delay"), Value: 10 * time.Minute, Usage: "keep a removed cluster published for `TIME`, while connections to it drain"},
		&cli.StringFlag{Category: groupPublish, Name: "group", EnvVars: env("group"), Usage: "`GROUP`, a name or a number, that may read files with secrets (default: the group of the output directory)"},
	}
}

// confirmFlags say which Envoys confirm what is published.
func confirmFlags() []cli.Flag {
	return []cli.Flag{
		envoyAdminFlag(),
		&cli.StringSliceFlag{Category: groupEnvoy, Name: "envoy-log", EnvVars: env("envoy-log"), Usage: "log `FILE` of this Envoy, to show why it rejects a change; start Envoy with --log-path FILE --file-flush-interval-msec 100"},
		&cli.StringFlag{Category: groupEnvoy, Name: "ack-quorum", EnvVars: env("ack-quorum"), Value: quorum.Quorum{}.String(), Usage: "how many of the Envoys that answer must acknowledge a step before the next one starts: `all|any|N`"},
		&cli.DurationFlag{Category: groupEnvoy, Name: "ack-timeout", EnvVars: env("ack-timeout"), Value: 15 * time.Second, Usage: "wait `TIME` at most for the acknowledgements of a step; then it counts as unconfirmed, and the change continues"},
		&cli.DurationFlag{Category: groupEnvoy, Name: "warm-timeout", EnvVars: env("warm-timeout"), Value: 30 * time.Second, Usage: "wait `TIME` at most for new clusters to warm before listeners and routes use them"},
	}
}

func envoyAdminFlag() cli.Flag {
	return &cli.StringSliceFlag{Category: groupEnvoy, Name: "envoy-admin", EnvVars: env("envoy-admin"), Usage: "admin `URL` of an Envoy that reads the output directory: http://HOST:PORT or unix:PATH"}
}

func retryHeldFlag() cli.Flag {
	return &cli.BoolFlag{Category: groupRun, Name: "retry-held", EnvVars: env("retry-held"), Usage: "publish once more a snapshot that is held because Envoy rejected it", DisableDefaultText: true}
}

func quietFlag() cli.Flag {
	return &cli.BoolFlag{Category: groupPrint, Name: "quiet", Aliases: []string{"q"}, EnvVars: env("quiet"), Usage: "print only errors, and log only warnings and errors", DisableDefaultText: true}
}

func logFormatFlag() cli.Flag {
	return &cli.StringFlag{Category: groupPrint, Name: "log-format", EnvVars: env("log-format"), Value: "text", Usage: "log as `text|json`, one line an event"}
}

// watchFlags say when a source tree is looked at.
func watchFlags() []cli.Flag {
	return []cli.Flag{
		&cli.DurationFlag{Category: groupWatch, Name: "quiet-period", EnvVars: env("quiet-period"), Value: 100 * time.Millisecond, Usage: "publish once nothing in the tree has changed for `TIME`, or after 2s of changes; on Linux one changed file goes out as soon as it is complete"},
		&cli.DurationFlag{Category: groupWatch, Name: "rescan", EnvVars: env("rescan"), Value: 30 * time.Second, Usage: "read the whole tree every `TIME`, even without a file event; less often if that takes more than 0.1% of a CPU"},
		&cli.DurationFlag{Category: groupWatch, Name: "poll", EnvVars: env("poll"), Usage: "look for changes every `TIME`, as network file systems need, which report no file events; 0s waits for events"},
	}
}

// sourceOptions returns the options for reading and judging a source tree. usual are the profiles
// where none is given.
func sourceOptions(v values, source string, usual ...string) (check.Options, error) {
	o := check.Options{
		Path: source, Ignore: value(v, "ignore", v.c.StringSlice), IgnoredAt: v.at["ignore"].Places(), Allow: value(v, "allow-path", v.c.StringSlice), AllowEmpty: value(v, "allow-empty", v.c.Bool),
		Bootstrap: value(v, "bootstrap", v.c.Path), DescriptorSets: v.own.sets.Files,
		Rules: check.Rules{Disable: value(v, "disable", v.c.StringSlice), Enable: value(v, "enable", v.c.StringSlice), Profiles: value(v, "profile", v.c.StringSlice)},
	}
	client, err := clientOf(v, "param")
	if err != nil {
		return o, err
	}
	o.Client = &client
	for _, name := range o.Profiles {
		if !slices.Contains(check.Profiles(), name) {
			return o, v.invalid("profile", name, oneOf(check.Profiles(), name))
		}
	}
	if len(o.Profiles) == 0 {
		o.Profiles = usual
	}
	if len(o.Profiles) > 0 && value(v, "out", v.c.Path) != "" {
		o.Profiles = append(slices.Clone(o.Profiles), check.Files)
	}
	var unknown string
	var ok bool
	if o.Envoy, unknown, ok = check.EnvoyOf(value(v, "envoy-version", v.c.StringSlice)); !ok {
		return o, v.invalid("envoy-version", unknown, oneOf(check.EnvoyReleases(), ""))
	}
	o.Envoy = o.Envoy.With(v.own.registry)
	for _, pattern := range o.Ignore {
		if _, err := filepath.Match(pattern, ""); err != nil {
			return o, v.invalid("ignore", pattern, "write a glob pattern such as *.conf or old/*")
		}
	}
	if err := cmp.Or(checkRules(v, "disable", o.Disable), checkRules(v, "enable", o.Enable)); err != nil {
		return o, err
	}
	override(v, &o)
	return o, nil
}

// settingsAndSource returns the settings of a command for a source tree, and the options for reading and
// judging it that they make. usual is that of sourceOptions.
func settingsAndSource(c *cli.Context, source string, usual ...string) (v values, o check.Options, err error) {
	if v, err = settings(c, source); err == nil {
		o, err = sourceOptions(v, source, usual...)
	}
	return v, o, err
}

// checkRules returns an error where there is no rule of a name that a flag gives.
func checkRules(v values, flag string, given []string) error {
	for _, name := range given {
		if wrong := wrongRule(name); wrong != "" {
			return v.invalid(flag, name, wrong)
		}
	}
	return nil
}

// wrongRule says why a name is not that of a rule that can be turned off; empty where it is.
func wrongRule(name string) string {
	rules := diag.Names(codes.Rules())
	switch meant := nearestRule(rules, name); {
	case slices.Contains(rules, name):
		return ""
	case slices.Contains(diag.Names(codes.All()), name):
		return "this finding can't be turned off, since xdspub can't read the file"
	case meant != "":
		return fmt.Sprintf("did you mean %s?", meant)
	}
	return "run xdspub rules for a list"
}

// optionsOf makes options of the settings of a command, for each target.
type optionsOf func(v values, source string, log *event.Log) ([]watch.Options, error)

// settingsAndOptions returns the settings of a command whose argument is SRC, and the options that
// they make.
func settingsAndOptions(c *cli.Context, options optionsOf) (v values, o []watch.Options, err error) {
	source, err := oneArgument(c, "SRC")
	if err != nil {
		return v, o, err
	}
	if v, err = settings(c, source); err != nil {
		return v, o, err
	}
	log, err := newLogger(c)
	if err != nil {
		return v, o, err
	}
	o, err = options(v, source, log)
	return v, o, err
}

// publishOptions returns the options for all stages of a command that writes: those of each target, or the only
// ones.
func publishOptions(v values, source string, log *event.Log) ([]watch.Options, error) {
	targets, err := chosenTargets(v)
	switch {
	case err != nil:
		return nil, err
	case value(v, "out", v.c.Path) == "":
		return nil, usagef("--out is required: see %s", helpFor(v.c.Command.Name))
	case targets == nil:
		o, err := controllerOptions(v, source, log)
		return []watch.Options{o}, err
	}
	if err := v.apart(targets); err != nil {
		return nil, err
	}
	var all []watch.Options
	for _, t := range targets {
		o, err := controllerOptions(v.ofTarget(t), source, log.For(t.name))
		if err != nil {
			return nil, err
		}
		o.Target, o.Source.Client, o.AllOrNothing = t.name, &t.client, value(v, "all-or-nothing", v.c.Bool)
		all = append(all, o)
	}
	return all, nil
}

// controllerOptions returns the options for all stages. usual is that of sourceOptions.
func controllerOptions(v values, source string, log *event.Log, usual ...string) (watch.Options, error) {
	of, err := sourceOptions(v, source, usual...)
	o := watch.Options{Options: pipeline.Options{Source: of}, Group: value(v, "group", v.c.String), WarningsAsErrors: value(v, "warnings-as-errors", v.c.Bool)}
	if err != nil {
		return o, err
	}
	if o.Source.Oracle, err = oracleOf(v, of.Rules); err != nil {
		return o, err
	}
	o.Log = log
	o.Out, o.EnvoyPath = value(v, "out", v.c.Path), value(v, "envoy-path", v.c.String)
	if err := v.check(slices.Concat(publishFlags(), confirmFlags())); err != nil {
		return o, err
	}
	o.Format = render.FormatNamed(value(v, "format", v.c.String))
	o.Endpoints, o.InotifyBudget = planner.EndpointsMode(value(v, "eds", v.c.String)), value(v, "inotify-budget", v.c.Int)
	o.PollInterval, o.TrimDelay = value(v, "poll-interval", v.c.Duration), value(v, "trim-delay", v.c.Duration)
	o.StepGap = value(v, "step-gap", v.c.Duration) + o.PollInterval // the step before takes effect as late as that
	o.Envoys, err = fleet(v, o.Options)
	return o, err
}

// wants says what the value of a flag has to be, where x has its type and is invalid; else it is
// empty.
func wants(flag string, x any) string {
	switch x := x.(type) {
	case string:
		_, err := quorum.Parse(x)
		switch {
		case flag == "format" && render.FormatNamed(x) == nil:
			return oneOf(formatNames(), x)
		case flag == "eds" && !slices.Contains(endpointsModes, planner.EndpointsMode(x)):
			return oneOf([]string{"file", "inline", "auto"}, x)
		case flag == "envoy-path" && x != "" && !strings.HasPrefix(x, "/"):
			return "write an absolute path: the one that Envoy sees"
		case flag == "ack-quorum" && err != nil && x != noQuorum:
			return quorumForm(x)
		}
	case int:
		if flag == "inotify-budget" && x < 2 {
			return "write 2 or more, since CDS and LDS take one each"
		}
	case time.Duration:
		zero := slices.Contains([]string{"step-gap", "trim-delay", "poll", "poll-interval"}, flag)
		switch {
		case flag == "poll-interval" && x != 0 && x < time.Millisecond:
			return "write 1ms or more, as Envoy wants it, or 0s to wait for events"
		case zero && x < 0:
			return "write 0s or more"
		case !zero && x <= 0:
			return "write a time above 0s"
		}
	}
	return ""
}

// noQuorum is the quorum of clients whose answers nobody waits for.
const noQuorum = "none"

func quorumForm(given string) string {
	if meant := nearest([]string{"all", "any"}, given); meant != "" {
		return fmt.Sprintf("did you mean %s?", meant)
	}
	return "use all, any, or a number from 1"
}

// textOrJSON are the formats of what is no list of findings.
var textOrJSON = []string{"text", "json"}

var endpointsModes = []planner.EndpointsMode{planner.EndpointsFile, planner.EndpointsInline, planner.EndpointsAuto}

func pollIntervalFlag(category, usage string) cli.Flag {
	return &cli.DurationFlag{Category: category, Name: "poll-interval", EnvVars: env("poll-interval"), Usage: usage, DefaultText: "it waits for events"}
}

// fleet returns the Envoys that flags name, nil where they name none.
func fleet(v values, o pipeline.Options) (*envoy.Fleet, error) {
	text := value(v, "ack-quorum", v.c.String)
	switch {
	case text == noQuorum && v.c.Command.Name != "serve": // which has clients
		return nil, v.invalid("ack-quorum", text, quorumForm(text))
	case text == noQuorum:
		text = quorum.Quorum{}.String()
	}
	q, err := quorum.Parse(text)
	if err != nil {
		return nil, err // none that check lets through
	}
	f := envoy.FleetOptions{
		Quorum: q, Dir: cmp.Or(o.EnvoyPath, published.DefaultEnvoyPath(o.Out)), Log: o.Log,
		AckTimeout: value(v, "ack-timeout", v.c.Duration), WarmTimeout: value(v, "warm-timeout", v.c.Duration),
	}
	if o.PollInterval >= f.AckTimeout {
		return nil, v.invalid("ack-timeout", f.AckTimeout.String(), fmt.Sprintf("Envoy reads a file as late as --poll-interval %s, so allow more time than that", o.PollInterval))
	}
	for _, file := range value(v, "envoy-log", v.c.StringSlice) {
		f.Logs = append(f.Logs, envoy.NewLog(file))
	}
	if f.Admins, err = admins(v); err != nil {
		return nil, err
	}
	if len(f.Admins) == 0 {
		if len(f.Logs) > 0 {
			return nil, usagef("--envoy-log needs --envoy-admin: the admin interface says that Envoy rejected a change, the log says why")
		}
		return nil, nil
	}
	if !q.Within(len(f.Admins)) {
		return nil, v.invalid("ack-quorum", text, fmt.Sprintf("--envoy-admin names only %s", diag.Count(len(f.Admins), "Envoy")))
	}
	return envoy.NewFleet(f), nil
}

// admins returns those that --envoy-admin names. One that is named twice would count twice
// in a quorum.
func admins(v values) ([]*envoy.Admin, error) {
	var list []*envoy.Admin
	named := make(map[string]bool)
	for _, url := range value(v, "envoy-admin", v.c.StringSlice) {
		key := strings.TrimSuffix(url, "/")
		if named[key] {
			return nil, v.invalid("envoy-admin", url, "it is given twice")
		}
		named[key] = true
		admin, err := envoy.NewAdmin(url)
		if err != nil {
			return nil, v.invalid("envoy-admin", url, adminForm(url))
		}
		list = append(list, admin)
	}
	return list, nil
}

// adminForm says how an admin interface is written that is not.
func adminForm(url string) string {
	if rest, https := strings.CutPrefix(url, "https://"); https {
		return fmt.Sprintf("Envoy's admin interface has no TLS, write http://%s", rest)
	}
	if _, err := envoy.NewAdmin("http://" + url); err == nil && strings.Contains(url, ":") && !strings.Contains(url, "/") {
		return fmt.Sprintf("write http://%s", url)
	}
	return "write http://HOST:PORT or unix:PATH"
}

func formatNames() (names []string) {
	for _, f := range render.Formats {
		names = append(names, f.Name)
	}
	return names
}
