package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"xdspub/check"
	"xdspub/event"
	"xdspub/internal/addr"
	"xdspub/serve"
	"xdspub/serve/admit"
	"xdspub/serve/cache"
	"xdspub/serve/listen"
	"xdspub/setup/bootstrap"
	"xdspub/watch"
	"xdspub/xds/params"
	"xdspub/xds/quorum"
)

func serveCommand() *cli.Command {
	return &cli.Command{
		Name:      "serve",
		Usage:     "serve a source tree to xDS clients, and again whenever it changes",
		ArgsUsage: "SRC",
		Description: `Serves the tree by the xDS transport protocol, to Envoys and to gRPC clients, until it is
stopped. While the tree has errors, clients keep what they have. A change is sent to the clients
that it concerns; a response that a client rejects is not sent to it again before the tree changes.
With --out it publishes the files as well, like watch. SIGHUP reads the tree at once, and retries
what was rejected. SIGTERM asks the clients to leave.

Examples:
  xdspub serve --grpc 127.0.0.1:18000 config/
  xdspub serve --grpc unix:/run/xds.sock --out /var/lib/xds config/

Exit status: 0 ended by a signal, 2 wrong usage, 3 could not run.`,
		Flags: append(slices.Concat(serveFlags(), watchedFlags(), oracleFlags()), maxFindingsFlag(), retryHeldFlag(), quietFlag(), logFormatFlag()),
		Action: func(c *cli.Context) error {
			hangup, ignore := hangups()
			defer ignore()
			v, all, err := settingsAndOptions(c, servedOptions)
			if err != nil {
				return err
			}
			if err := checkAddresses(v); err != nil {
				return err
			}
			if err := v.check(slices.Concat(serveFlags(), watchFlags())); err != nil {
				return err
			}
			ctx, stop := untilSignal(c)
			defer stop()
			return serveUntil(ctx, &v, all[0], hangup)
		},
	}
}

// serveFlags say where clients connect.
func serveFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Category: groupServe, Name: "grpc", EnvVars: env("grpc"), Usage: "serve gRPC clients on `ADDR`: HOST:PORT or unix:PATH"},
		&cli.StringSliceFlag{Category: groupServe, Name: "http", EnvVars: env("http"), Usage: "serve HTTP on `ADDR`: HOST:PORT or unix:PATH"},
		&cli.StringFlag{Category: groupServe, Name: "xds-cluster", EnvVars: env("xds-cluster"), Value: bootstrap.DefaultCluster, Usage: "`NAME` of the cluster in the Envoys' bootstrap that leads to this server; a client that does not use ADS gets it in each config source"},
		&cli.DurationFlag{Category: groupServe, Name: "drain-time", EnvVars: env("drain-time"), Value: 5 * time.Second, Usage: "wait `TIME` at most for clients to leave after SIGTERM"},
		&cli.PathFlag{Category: groupServe, Name: "tls-cert", EnvVars: env("tls-cert"), Usage: "certificate chain of the server, a `FILE` in PEM: clients connect by TLS 1.3, but for those of Unix sockets; read again when it changes"},
		&cli.PathFlag{Category: groupServe, Name: "tls-key", EnvVars: env("tls-key"), Usage: "private key of --tls-cert, a `FILE` in PEM"},
		&cli.PathFlag{Category: groupServe, Name: "client-ca", EnvVars: env("client-ca"), Usage: "certificates that sign those of clients, a `FILE` in PEM: clients need one"},
		&cli.StringSliceFlag{Category: groupServe, Name: "allow-node", EnvVars: env("allow-node"), Usage: "let a client be a node only by its certificate: `ID=SAN`, two patterns; a * stands for the same text in both, ** for any (default: a client may be any node)"},
		&cli.StringSliceFlag{Category: groupServe, Name: "node-param", EnvVars: env("node-param"), Usage: "the dynamic parameter KEY of a client that sends none is this part of its node: `KEY=FIELD`, such as env=metadata.env; the fields are id, cluster, locality.region, locality.zone, locality.sub_zone and metadata.NAME"},
		&cli.StringSliceFlag{Category: groupServe, Name: "allow-param", EnvVars: env("allow-param"), Usage: "let a client have a dynamic parameter only by its certificate: `KEY=VALUE=SAN`, patterns as for --allow-node; variants that hold secrets are for these only, and for clients of Unix sockets"},
		&cli.StringSliceFlag{Category: groupServe, Name: "allow-status", EnvVars: env("allow-status"), Usage: "let a client ask what all clients run (CSDS, status --serve) by its certificate: a `SAN` with one * at most; clients of Unix sockets may, and without --client-ca those on this machine"},
		&cli.BoolFlag{Category: groupServe, Name: "insecure", EnvVars: env("insecure"), Usage: "allow addresses that other machines reach without TLS", DisableDefaultText: true},
		&cli.StringSliceFlag{Category: groupServe, Name: "limit", EnvVars: env("limit"), Usage: "bound what clients cost: `NAME=VALUE`, such as streams=1000; docs/serve-security.md lists the limits"},
		&cli.StringFlag{Category: groupServe, Name: "max-client-memory", EnvVars: env("max-client-memory"), Value: "256MiB", Usage: "let clients make the server hold `SIZE` of memory at most, beside what the tree needs: a request beyond that is refused; one client leaves half of it to others"},
	}
}

// servedUsage is what flags of watch mean for serve, where that is something else.
var servedUsage = map[string]string{
	"out":         "publish files, too: output `DIR`, which Envoy reads",
	"group":       "`GROUP`, a name or a number, that may read files with secrets, and connect to Unix sockets (default: for files the group of the output directory, for sockets that of the process)",
	"ack-quorum":  "how many must acknowledge a change, which else is undone: of the Envoys that answer and read --out, and of the connected clients that the change concerns: `none|any|all|N`; unless set, all of these Envoys and none of the clients",
	"ack-timeout": "wait `TIME` at most for the acknowledgements of a step, or of the clients; then it counts as unconfirmed, and the change continues",
}

// watchedFlags are those that serve has from watch.
func watchedFlags() []cli.Flag {
	flags := slices.Concat(sourceFlags(), publishFlags(), confirmFlags(), watchFlags())
	for _, f := range flags {
		usage := servedUsage[f.Names()[0]]
		if usage == "" {
			continue
		}
		switch f := f.(type) {
		case *cli.PathFlag:
			f.Usage = usage
		case *cli.StringFlag:
			f.Usage = usage
			if f.Name == "ack-quorum" {
				f.DefaultText = "all, none"
			}
		case *cli.DurationFlag:
			f.Usage = usage
		}
	}
	return flags
}

// confirmation returns how clients confirm a snapshot, nil where they do not.
func confirmation(v values) (*cache.Confirmation, error) {
	text := value(v, "ack-quorum", v.c.String)
	if _, set := v.file["ack-quorum"]; text == noQuorum || !set && !v.c.IsSet("ack-quorum") {
		return nil, nil
	}
	q, err := quorum.Parse(text)
	return &cache.Confirmation{Quorum: q, Timeout: value(v, "ack-timeout", v.c.Duration)}, err
}

// checkAddresses returns an error where there is no address, or a wrong one.
func checkAddresses(v values) error {
	n := 0
	for _, flag := range []string{"grpc", "http"} {
		for _, address := range value(v, flag, v.c.StringSlice) {
			n++
			if _, err := addr.Parse(address); err != nil {
				return v.invalid(flag, address, "write HOST:PORT or unix:PATH")
			}
		}
	}
	if n == 0 {
		return usagef("--grpc or --http is required: see %s", helpFor(v.c.Command.Name))
	}
	return nil
}

// servedOptions returns the options for all stages. Those of the output directory need --out. What is served
// depends on the client, and not on targets.
func servedOptions(v values, source string, log *event.Log) ([]watch.Options, error) {
	if value(v, "out", v.c.Path) == "" {
		for _, f := range slices.Concat(publishFlags(), confirmFlags()) {
			if name := f.Names()[0]; v.c.IsSet(name) && !slices.Contains([]string{"trim-delay", "group", "ack-quorum", "ack-timeout"}, name) {
				return nil, usagef("--%s needs --out: it says how files are published", name)
			}
		}
	} else if v.file[targetsSetting] != nil {
		return nil, usagef("%s: serve publishes no files for targets: leave out --out, and run watch beside it", v.at[targetsSetting].Position)
	}
	o, err := controllerOptions(v, source, log, check.Streams)
	if err == nil && len(o.Source.Client.Parameters) == 0 {
		o.Source.Client = nil // any
		o.ByNode = len(value(v, "node-param", v.c.StringSlice)) > 0
	}
	return []watch.Options{o}, err
}

// nodeParameters returns what the dynamic parameters of clients are, by their nodes.
func nodeParameters(v values) (list []admit.NodeParameter, err error) {
	for _, text := range value(v, "node-param", v.c.StringSlice) {
		p, err := admit.ParseNodeParameter(text)
		if err != nil {
			return nil, v.invalid("node-param", text, err.Error())
		}
		if slices.ContainsFunc(list, func(other admit.NodeParameter) bool { return other.Key == p.Key }) {
			return nil, v.invalid("node-param", text, "this key has a field already")
		}
		list = append(list, p)
	}
	if len(list) > 0 && len(value(v, "param", v.c.StringSlice)) > 0 {
		return nil, usagef("--param and --node-param exclude each other: by --param all clients are of one kind")
	}
	return list, nil
}

// protection returns who may connect, and what clients may cost.
func protection(v values) (serve.Security, serve.Limits, error) {
	var limits serve.Limits
	s := serve.Security{
		TLS: listen.Files{
			Cert: value(v, "tls-cert", v.c.Path), Key: value(v, "tls-key", v.c.Path), ClientCA: value(v, "client-ca", v.c.Path),
		},
		Insecure: value(v, "insecure", v.c.Bool), Group: value(v, "group", v.c.String),
	}
	for _, text := range value(v, "allow-node", v.c.StringSlice) {
		rule, err := admit.ParseNodeRule(text)
		if err != nil {
			return s, limits, v.invalid("allow-node", text, err.Error())
		}
		s.Nodes = append(s.Nodes, rule)
	}
	for _, text := range value(v, "allow-param", v.c.StringSlice) {
		rule, err := admit.ParseParamRule(text)
		if err != nil {
			return s, limits, v.invalid("allow-param", text, err.Error())
		}
		s.Params = append(s.Params, rule)
	}
	for _, text := range value(v, "allow-status", v.c.StringSlice) {
		pattern, err := admit.ParseNamePattern(text)
		if err != nil {
			return s, limits, v.invalid("allow-status", text, err.Error())
		}
		s.Status = append(s.Status, pattern)
	}
	for _, text := range value(v, "limit", v.c.StringSlice) {
		name, _, _ := strings.Cut(text, "=")
		if meant := nearest(serve.LimitNames(), name); meant != "" && meant != name {
			return s, limits, v.invalid("limit", text, fmt.Sprintf("did you mean %s?", meant))
		}
		if err := limits.Set(text); err != nil {
			return s, limits, v.invalid("limit", text, err.Error())
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

// leastClientMemory is what a few clients need.
const leastClientMemory = 8 << 20

// maxClientMemory returns how much memory clients may make the server hold, in bytes.
func maxClientMemory(v values) (int64, error) {
	size := value(v, "max-client-memory", v.c.String)
	bytes := bytesOf(size)
	if bytes < leastClientMemory || bytes > math.MaxInt64/4 {
		return 0, v.invalid("max-client-memory", size, "write a size of 8MiB or more, such as 256MiB or 2GiB")
	}
	return int64(bytes), nil
}

// serveUntil serves until ctx ends. v becomes what the settings file says later.
func serveUntil(ctx context.Context, v *values, o watch.Options, hangup <-chan os.Signal) error {
	confirm, err := confirmation(*v)
	if err != nil {
		return err
	}
	security, limits, err := protection(*v)
	if err != nil {
		return err
	}
	clientMemory, err := maxClientMemory(*v)
	if err != nil {
		return err
	}
	byNode, err := nodeParameters(*v)
	if err != nil {
		return err
	}
	var usual params.Parameters // nil for any
	if o.Source.Client != nil {
		usual = o.Source.Client.Parameters
	}
	s, err := serve.Listen(ctx, serve.Options{
		Parameters: usual, NodeParameters: byNode,
		Confirm: confirm, Security: security, Limits: limits, ClientMemory: clientMemory,
		GRPC: value(*v, "grpc", v.c.StringSlice), HTTP: value(*v, "http", v.c.StringSlice),
		Cluster: value(*v, "xds-cluster", v.c.String), TrimDelay: o.TrimDelay, DrainTime: value(*v, "drain-time", v.c.Duration), Log: o.Log,
	})
	if err != nil {
		return err
	}
	o.Server = s
	holdLess(50)
	return s.RunWhile(ctx, func(ctx context.Context) error {
		return watchUntil(ctx, v, []watch.Options{o}, servedOptions, hangup)
	})
}
