package main

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"xdspub/check"
	"xdspub/cmd/settings"
	"xdspub/diag"
	"xdspub/envoy"
	"xdspub/event"
	"xdspub/render"
	"xdspub/render/planner"
	"xdspub/render/published"
	"xdspub/watch"
	"xdspub/watch/part"
	"xdspub/watch/pipeline"
	"xdspub/xds/quorum"
)

// sourceOptions returns the options for reading and judging a source tree. usual are the profiles if the
// settings have none.
func sourceOptions(v *call, source string, usual ...string) (check.Options, error) {
	o := check.Options{
		Path: source, Ignore: v.Ignore.Value, IgnoredAt: v.Ignore.Places(), Allow: v.AllowPath.Value, AllowEmpty: v.AllowEmpty.Value,
		Bootstrap: v.Bootstrap.Value, Remote: v.remote, DescriptorSets: v.Types.Files,
		Owners: v.Owners.Value, OwnersAt: v.Owners.Places(),
		Rules: check.Rules{Disable: v.Disable.Value, Enable: v.Enable.Value, Profiles: v.Profile.Value},
	}
	client, err := clientOf(v.Param)
	if err != nil {
		return o, err
	}
	o.Client = &client
	for _, name := range o.Profiles {
		if !slices.Contains(check.Profiles(), name) {
			return o, v.Profile.Invalid(name, settings.OneOf(check.Profiles(), name))
		}
	}
	if len(o.Profiles) == 0 {
		o.Profiles = usual
	}
	if len(o.Profiles) > 0 && v.Out.Value != "" {
		o.Profiles = append(slices.Clone(o.Profiles), check.Files)
	}
	var unknown string
	var ok bool
	if o.Envoy, unknown, ok = check.EnvoyOf(v.EnvoyVersion.Value); !ok {
		return o, v.EnvoyVersion.Invalid(unknown, settings.OneOf(check.EnvoyReleases(), ""))
	}
	o.Envoy = o.Envoy.With(v.Types.Registry)
	for _, pattern := range o.Ignore {
		if _, err := filepath.Match(pattern, ""); err != nil {
			return o, v.Ignore.Invalid(pattern, "write a glob pattern such as *.conf or old/*")
		}
	}
	if err := cmp.Or(checkRules(v.Disable), checkRules(v.Enable)); err != nil {
		return o, err
	}
	override(v, &o)
	return o, nil
}

// settingsAndSource reads the settings file for a source tree, and returns the settings of c with it, and the
// sourceOptions of these settings. The options are for one client, and ignore the targets of the settings. A
// command for all clients uses optionsOfTree.
func settingsAndSource(c *call, source string, usual ...string) (v *call, o check.Options, err error) {
	if v, err = c.withFile(source); err == nil {
		o, err = sourceOptions(v, source, usual...)
	}
	return v, o, err
}

// optionsOfClient returns the settings for a source tree, and the options of its check for the client of --param or
// --target.
func optionsOfClient(c *call, source string) (v *call, o check.Options, err error) {
	if v, err = c.withFile(source); err != nil {
		return v, o, err
	}
	client, err := clientNamed(v, v.Param, v.ClientTarget)
	if err != nil {
		return v, o, err
	}
	of := v
	switch {
	case v.ClientTarget.Given():
		t, err := targetNamed(v, v.ClientTarget.Origin, v.ClientTarget.Value)
		if err != nil {
			return v, o, err
		}
		of = v.with(v.OfTarget(t))
	case len(v.Targets.Value) > 0 && len(v.Param.Value) == 0:
		return v, o, usagef("%s: the tree has targets, and a %s is of one client: choose a target by --target", v.Targets.Position(), v.Command.Name)
	}
	o, err = sourceOptions(of, source)
	if o.Client = &client; len(client.Parameters)+len(client.Authorities) == 0 {
		o.Client = nil // judged for all clients, and shown for a client without parameters
	}
	return v, o, err
}

// checkRules returns an error if the setting has a name that is not the name of a rule.
func checkRules(given settings.Value[[]string]) error {
	for _, name := range given.Value {
		if wrong := settings.WrongRule(name); wrong != "" {
			return given.Invalid(name, wrong)
		}
	}
	return nil
}

// optionsOf returns the options of a watch for the settings of a command: one for each target, or a single one
// without targets.
type optionsOf func(v *call, source string, log *event.Log) ([]watch.Options, error)

// settingsAndOptions reads the settings file for the source tree that is the argument of c, and returns the
// settings of c with it, and the options that options returns for them. The caller closes the hooks of v.
func settingsAndOptions(c *call, options optionsOf) (v *call, o []watch.Options, err error) {
	source, err := oneArgument(c, "SRC")
	if err != nil {
		return v, o, err
	}
	if v, err = c.withFile(source); err != nil {
		return v, o, err
	}
	var sinks []func(event.Record)
	if len(v.HTTP.Value) > 0 && !v.Once.Value {
		v.observer = newObserver(v)
		sinks = append(sinks, v.observer.Event)
	}
	if v.events = newEvents(v); v.events != nil && v.observer == nil {
		sinks = append(sinks, v.events.Add)
	}
	if v.notifier = newNotifier(v); v.notifier != nil {
		sinks = append(sinks, v.notifier.Event)
	}
	if v.hooks, err = newHooks(v); err != nil {
		return v, o, err
	} else if v.hooks != nil {
		sinks = append(sinks, v.hooks.Event)
	}
	log, err := newLogger(c, sinks...)
	if err != nil {
		return v, o, err
	}
	if v.writer, err = newWriter(v, log); err != nil {
		return v, o, err
	}
	if err := configureRollouts(v); err != nil {
		return v, o, err
	}
	if err := follow(v, source, log); err != nil {
		return v, o, err
	}
	if o, err = options(v, source, log); err == nil {
		v.hooks.Start(log)
	}
	return v, o, err
}

// publishOptions returns the options of render and watch: one for each target, or a single one without targets.
func publishOptions(v *call, source string, log *event.Log) ([]watch.Options, error) {
	targets, err := chosenTargets(v)
	switch {
	case err == nil && targets != nil && v.remote != nil:
		return nil, usagef("%s: a control plane answers for one node, and has no targets", v.Targets.Position())
	case err != nil:
		return nil, err
	case v.Out.Value == "":
		return nil, usagef("--out is required: see %s", helpFor(v.Command.Name))
	case targets == nil:
		o, err := controllerOptions(v, source, log)
		return []watch.Options{o}, err
	}
	if err := checkApart(v, targets); err != nil {
		return nil, err
	}
	var all []watch.Options
	for _, t := range targets {
		o, err := controllerOptions(v.with(v.OfTarget(t)), source, log.For(t.Name))
		if err != nil {
			return nil, err
		}
		o.Target, o.Source.Client, o.AllOrNothing = t.Name, &t.Client, v.AllOrNothing.Value
		all = append(all, o)
	}
	return all, nil
}

// controllerOptions returns the options of a Controller. usual is as for sourceOptions.
func controllerOptions(v *call, source string, log *event.Log, usual ...string) (watch.Options, error) {
	of, err := sourceOptions(v, source, usual...)
	o := watch.Options{Options: pipeline.Options{Source: of}, Group: v.Group.Value, WarningsAsErrors: v.WarningsAsErrors.Value}
	if err != nil {
		return o, err
	}
	if o.Source.Oracle, err = oracleOf(v, of.Rules); err != nil {
		return o, err
	}
	o.Log = log
	o.Out, o.EnvoyPath = v.Out.Value, v.EnvoyPath.Value
	if err := v.Check(slices.Concat(settings.Publish(), settings.Confirm())...); err != nil {
		return o, err
	}
	o.Format = render.FormatNamed(v.Format.Value)
	o.Endpoints, o.InotifyBudget = planner.EndpointsMode(v.EDS.Value), v.InotifyBudget.Value
	o.PollInterval, o.TrimDelay = v.PollInterval.Value, v.TrimDelay.Value
	if o.WhileRefused, err = goesOn(v); err != nil {
		return o, err
	}
	o.Guards, o.MaxRemoval = !v.AllowRemoval.Value, v.MaxRemoval.Value
	if o.ConfirmWithin, err = confirmWithin(v); err != nil {
		return o, err
	}
	o.StepGap = v.StepGap.Value + o.PollInterval // an Envoy that polls reads the files of a step this late
	if o.History.Size, err = historySize(v); err != nil {
		return o, err
	}
	o.History.Keep, o.Command, o.By, o.Reason = v.History.Value, v.Command.Name, operatorOf(), v.Reason.Value
	if o.Reason == "" {
		o.Freeze = v.Freeze.Value
	}
	o.Envoys, err = fleet(v, o.Options)
	return o, err
}

// goesOn returns the types of --while-refused, each once.
func goesOn(v *call) ([]string, error) {
	given := v.WhileRefused
	if err := given.Check(); err != nil {
		return nil, err
	}
	if len(given.Value) > 0 && v.AllOrNothing.Value {
		return nil, usagef("while-refused and all-or-nothing exclude each other: all-or-nothing publishes all targets, or nothing")
	}
	if len(v.Owners.Value) > 0 && v.AllOrNothing.Value && v.Command.Name != "render" { // render publishes no part
		return nil, usagef("%s: owners and all-or-nothing exclude each other: all-or-nothing publishes all targets, or nothing", v.Owners.Position())
	}
	return slices.DeleteFunc(part.Names(), func(name string) bool { return !slices.Contains(given.Value, name) }), nil
}

// confirmWithin returns --confirm-within. A part of a tree, or one of several targets, can't go back by itself.
func confirmWithin(v *call) (time.Duration, error) {
	d := v.ConfirmWithin
	if err := d.Check(); err != nil || d.Value == 0 {
		return 0, err
	}
	switch {
	case v.AllOrNothing.Value:
		return 0, usagef("confirm-within and all-or-nothing exclude each other: each target is confirmed, or undone, by itself")
	case len(v.WhileRefused.Value) > 0:
		return 0, usagef("confirm-within and while-refused exclude each other: while-refused publishes parts of a tree, which nobody confirms")
	case v.History.Value < 2:
		return 0, usagef("confirm-within needs --history 2 or more: an undo publishes the snapshot before, which the history has")
	}
	return d.Value, nil
}

// fleet returns the Envoys of --envoy-admin; nil for none.
func fleet(v *call, o pipeline.Options) (*envoy.Fleet, error) {
	text := v.AckQuorum.Value
	switch {
	case text == settings.NoQuorum && v.Command.Name != "serve": // only serve has clients
		return nil, v.AckQuorum.Invalid(text, settings.QuorumForm(text))
	case text == settings.NoQuorum:
		text = quorum.Quorum{}.String()
	}
	q, err := quorum.Parse(text)
	if err != nil {
		return nil, err // the law of --ack-quorum has no other errors
	}
	f := envoy.FleetOptions{
		Quorum: q, Dir: cmp.Or(o.EnvoyPath, published.DefaultEnvoyPath(o.Out)), Log: o.Log,
		AckTimeout: v.AckTimeout.Value, WarmTimeout: v.WarmTimeout.Value,
	}
	if o.PollInterval >= f.AckTimeout {
		return nil, v.AckTimeout.Invalid(f.AckTimeout.String(), fmt.Sprintf("Envoy reads a file as late as --poll-interval %s, so "+
			"allow more time than that", o.PollInterval))
	}
	for _, file := range v.EnvoyLog.Value {
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
		return nil, v.AckQuorum.Invalid(text, fmt.Sprintf("--envoy-admin names only %s", diag.Count(len(f.Admins), "Envoy")))
	}
	return envoy.NewFleet(f), nil
}

// admins returns the admin interfaces of --envoy-admin. An Envoy that is named twice is an error, because it
// would count twice in a quorum.
func admins(v *call) ([]*envoy.Admin, error) {
	var list []*envoy.Admin
	named := make(map[string]bool)
	for _, url := range v.EnvoyAdmin.Value {
		key := strings.TrimSuffix(url, "/")
		if named[key] {
			return nil, v.EnvoyAdmin.Invalid(url, "it is given twice")
		}
		named[key] = true
		admin, err := envoy.NewAdmin(url)
		if err != nil {
			return nil, v.EnvoyAdmin.Invalid(url, adminForm(url))
		}
		list = append(list, admin)
	}
	return list, nil
}

// adminForm returns what to write instead of a url that is not an admin interface.
func adminForm(url string) string {
	if rest, https := strings.CutPrefix(url, "https://"); https {
		return fmt.Sprintf("Envoy's admin interface has no TLS, write http://%s", rest)
	}
	if _, err := envoy.NewAdmin("http://" + url); err == nil && strings.Contains(url, ":") && !strings.Contains(url, "/") {
		return fmt.Sprintf("write http://%s", url)
	}
	return "write http://HOST:PORT or unix:PATH"
}
