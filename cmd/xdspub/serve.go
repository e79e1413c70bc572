package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"xdspub/check"
	"xdspub/cmd/settings"
	"xdspub/event"
	"xdspub/internal/addr"
	"xdspub/internal/crash"
	"xdspub/serve"
	"xdspub/serve/admit"
	"xdspub/serve/cache"
	"xdspub/serve/listen"
	"xdspub/watch"
	"xdspub/xds/quorum"
)

func serveCommand() *cli.Command {
	return &cli.Command{
		Name:      "serve",
		Usage:     "serve a source tree to xDS clients, and again whenever it changes",
		ArgsUsage: "SRC",
		Description: `Serves the tree by the xDS transport protocol, to Envoys and to gRPC clients, until it is
stopped. While the tree has errors, clients keep their resources. A change goes to the clients that
it concerns. A rejected response is not sent to its client again before the tree changes. With --out,
serve also publishes files, as watch does. SIGHUP reads the tree at once, and retries rejected
responses. SIGUSR1 writes the status to the log. SIGTERM asks the clients to leave.

Examples:
  xdspub serve --grpc 127.0.0.1:18000 config/
  xdspub serve --grpc unix:/run/xds.sock --out /var/lib/xds config/

Exit status: 0 ended by a signal, 2 wrong usage, 3 could not run.`,
		Flags: options(settings.Served()),
		Action: action(func(c *call) error {
			asked, ignore := receive()
			defer ignore()
			v, all, err := settingsAndOptions(c, servedOptions)
			if err != nil {
				return err
			}
			defer v.hooks.Close()
			if err := checkAddresses(v); err != nil {
				return err
			}
			if err := v.Check(slices.Concat(settings.Serve(), settings.Watch())...); err != nil {
				return err
			}
			ctx, stop := untilSignal(c)
			defer stop()
			return tellSystemd(ctx, v, all[0].Log, func(ctx context.Context) error {
				return serveUntil(ctx, v, all[0], asked)
			})
		}),
	}
}

// confirmation returns how clients confirm a snapshot; nil if serve does not wait for clients.
func confirmation(v *call) (*cache.Confirmation, error) {
	text := v.AckQuorum.Value
	if text == settings.NoQuorum || !v.AckQuorum.InFile() && !v.AckQuorum.Given() {
		return nil, nil
	}
	q, err := quorum.Parse(text)
	return &cache.Confirmation{Quorum: q, Timeout: v.AckTimeout.Value}, err
}

// checkAddresses returns an error if no address is given, or a wrong one.
func checkAddresses(v *call) error {
	if len(v.GRPC.Value)+len(v.HTTP.Value) == 0 {
		return usagef("--grpc or --http is required: see %s", helpFor(v.Command.Name))
	}
	return cmp.Or(checkAddress(v.GRPC), checkAddress(v.HTTP))
}

// checkAddress returns an error if an address of a setting is wrong.
func checkAddress(of settings.Value[[]string]) error {
	for _, address := range of.Value {
		if _, err := addr.ParseListener(address); err != nil {
			return of.Invalid(address, "write HOST:PORT, PORT, unix:PATH or fd:NAME")
		}
	}
	return nil
}

// servedOptions returns the single options of serve. Settings about files need --out. serve has no targets:
// what a client gets depends on its dynamic parameters.
func servedOptions(v *call, source string, log *event.Log) ([]watch.Options, error) {
	switch {
	case v.Out.Value != "" && v.State.Value != "":
		return nil, usagef("--state is for serve without --out: leave out --state, because the history is in --out")
	case v.Out.Value == "" && v.State.Value == "" && (v.History.Given() || v.HistorySize.Given()):
		return nil, usagef("--history and --history-size need --out or --state: no directory is given for the history")
	}
	if v.Out.Value == "" && v.State.Value == "" && v.ConfirmWithin.Value > 0 {
		return nil, usagef("confirm-within needs --out or --state: no directory is given for the history")
	}
	if v.Out.Value == "" {
		if name := settings.FirstGiven(v.Settings, settings.ForFiles()); name != "" {
			return nil, usagef("--%s needs --out: it says how files are published", name)
		}
	} else if v.Targets.InFile() {
		return nil, usagef("%s: serve publishes no files for targets: leave out --out, and run watch beside it", v.Targets.Position())
	}
	o, err := controllerOptions(v, source, log, check.Streams)
	if err == nil && len(o.Source.Client.Parameters) == 0 {
		o.Source.Client, o.Source.Published = nil, v.Out.Value != "" // any client; files are for a client without parameters
		o.ByNode = len(v.NodeParam.Value) > 0
	}
	if err == nil {
		var clients *cache.Confirmation
		clients, err = confirmation(v)
		o.State, o.ClientsConfirm = v.State.Value, clients != nil
	}
	return []watch.Options{o}, err
}

// nodeParameters returns the fields of nodes that are dynamic parameters, from --node-param.
func nodeParameters(v *call) (list []admit.NodeParameter, err error) {
	for _, text := range v.NodeParam.Value {
		p, err := admit.ParseNodeParameter(text)
		if err != nil {
			return nil, v.NodeParam.Invalid(text, err.Error())
		}
		if slices.ContainsFunc(list, func(other admit.NodeParameter) bool { return other.Key == p.Key }) {
			return nil, v.NodeParam.Invalid(text, "this key has a field already")
		}
		list = append(list, p)
	}
	if len(list) > 0 && len(v.Param.Value) > 0 {
		return nil, usagef("--param and --node-param exclude each other: --param gives all clients the same parameters")
	}
	return list, nil
}

// protection returns which clients may connect and what they may see, and the limits on their cost.
func protection(v *call) (serve.Security, serve.Limits, error) {
	var limits serve.Limits
	s := serve.Security{
		TLS: listen.Files{
			Cert: v.ServerCert.Value, Key: v.ServerKey.Value, ClientCA: v.ClientCA.Value,
		},
		Insecure: v.Insecure.Value, Group: v.Group.Value,
	}
	for _, text := range v.AllowNode.Value {
		rule, err := admit.ParseNodeRule(text)
		if err != nil {
			return s, limits, v.AllowNode.Invalid(text, err.Error())
		}
		s.Nodes = append(s.Nodes, rule)
	}
	for _, text := range v.AllowParam.Value {
		rule, err := admit.ParseParamRule(text)
		if err != nil {
			return s, limits, v.AllowParam.Invalid(text, err.Error())
		}
		s.Params = append(s.Params, rule)
	}
	for _, text := range v.AllowStatus.Value {
		pattern, err := admit.ParseNamePattern(text)
		if err != nil {
			return s, limits, v.AllowStatus.Invalid(text, err.Error())
		}
		s.Status = append(s.Status, pattern)
	}
	for _, text := range v.Limit.Value {
		name, _, _ := strings.Cut(text, "=")
		if meant := settings.Nearest(serve.LimitNames(), name); meant != "" && meant != name {
			return s, limits, v.Limit.Invalid(text, fmt.Sprintf("did you mean %s?", meant))
		}
		if err := limits.Set(text); err != nil {
			return s, limits, v.Limit.Invalid(text, err.Error())
		}
	}
	switch {
	case (s.TLS.Cert == "") != (s.TLS.Key == ""):
		return s, limits, usagef("--tls-cert and --tls-key belong together: give both")
	case s.TLS.ClientCA != "" && s.TLS.Cert == "":
		return s, limits, usagef("--client-ca needs --tls-cert and --tls-key: clients show certificates by TLS only")
	case len(s.Nodes) > 0 && s.TLS.ClientCA == "":
		return s, limits, usagef("--allow-node needs --client-ca: a client shows by its certificate who it is")
	case len(s.Params) > 0 && s.TLS.ClientCA == "":
		return s, limits, usagef("--allow-param needs --client-ca: a client shows by its certificate who it is")
	case len(s.Status) > 0 && s.TLS.ClientCA == "":
		return s, limits, usagef("--allow-status needs --client-ca: a client shows by its certificate who it is")
	}
	return s, limits, nil
}

// leastClientMemory is the smallest --max-client-memory in bytes, enough for a few clients.
const leastClientMemory = 8 << 20

// maxClientMemory returns how much memory clients may make the server hold, in bytes.
func maxClientMemory(v *call) (int64, error) {
	size := v.MaxClientMemory.Value
	bytes := bytesOf(size)
	if bytes < leastClientMemory || bytes > math.MaxInt64/4 {
		return 0, v.MaxClientMemory.Invalid(size, "write a size of 8MiB or more, such as 256MiB or 2GiB")
	}
	return int64(bytes), nil
}

// serverOptions returns the options of the server, without Options.Follow.
func serverOptions(v *call, o watch.Options) (of serve.Options, err error) {
	of = serve.Options{
		GRPC: v.GRPC.Value, HTTP: v.HTTP.Value, Node: v.upstream.Node,
		Cluster: v.XDSCluster.Value, TrimDelay: o.TrimDelay, DrainTime: v.DrainTime.Value, Log: o.Log,
	}
	if of.Confirm, err = confirmation(v); err != nil {
		return of, err
	}
	if of.Security, of.Limits, err = protection(v); err != nil {
		return of, err
	}
	if of.ClientMemory, err = maxClientMemory(v); err != nil {
		return of, err
	}
	if of.NodeParameters, err = nodeParameters(v); err != nil {
		return of, err
	}
	if of.AggregateBy, err = aggregateFields(v); err != nil {
		return of, err
	}
	if o.Source.Client != nil {
		of.Parameters = o.Source.Client.Parameters // nil: of each client
	}
	if v.observer != nil {
		of.Operations, of.Registry = v.observer.Handler(), v.observer.Registry()
	}
	return of, nil
}

// serveUntil serves until ctx ends. When the settings file changes, serveUntil replaces *v by the new settings.
func serveUntil(ctx context.Context, v *call, o watch.Options, asked signals) error {
	of, err := serverOptions(v, o)
	if err != nil {
		return err
	}
	asked.hangup = reloads(ctx, v, asked.hangup, o.Log)
	if len(of.AggregateBy) > 0 {
		r, given := newRelay(v, o.Source.Path, cmp.Or(of.Limits.Aggregates, serve.DefaultLimits.Aggregates)), asked
		of.Follow = r.follow
		own, leave := r.signals()
		defer leave()
		go crash.Again(ctx.Done(), func() { r.pass(ctx, given) }, o.Log.Crashed)()
		asked = own
	}
	s, err := serve.Listen(ctx, of)
	if err != nil {
		return err
	}
	if v.observer != nil {
		v.observer.Observe(s)
	}
	o.Server = s
	collectSooner(50)
	return s.RunWhile(ctx, func(ctx context.Context) error {
		v.notifier.Open()
		return watchUntil(ctx, v, []watch.Options{o}, servedOptions, asked)
	})
}
