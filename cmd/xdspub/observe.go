package main

import (
	"cmp"
	"context"
	"net"

	"xdspub/cmd/settings"
	"xdspub/event"
	"xdspub/internal/addr"
	"xdspub/observe"
	"xdspub/serve"
)

// newObserver returns the Observer behind --http.
func newObserver(v *call) *observe.Observer {
	o := observe.Options{Version: buildVersion().program, Profiles: v.Pprof.Value}
	for _, text := range v.HTTP.Value {
		if a, err := addr.ParseListener(text); err == nil && a.Network == "tcp" {
			host, _, _ := net.SplitHostPort(a.Name)
			o.Hosts = append(o.Hosts, host)
		}
	}
	return observe.New(o)
}

// newEvents returns the last events of a watch or a server, for xdspub doctor --bundle; nil for render.
func newEvents(v *call) *event.History {
	switch {
	case v.Command.Name == "render" || v.Once.Value:
		return nil
	case v.observer != nil:
		return v.observer.Events()
	}
	return event.NewHistory(event.HistoryLimits{Events: 1000, Bytes: 1 << 20, Size: 16 << 10})
}

// checkOperations returns an error if a setting of a watch or of its HTTP server is not allowed.
func checkOperations(v *call) error {
	if name := settings.FirstGiven(v.Settings, settings.Operations()[1:]); name != "" && len(v.HTTP.Value) == 0 {
		return usagef("--%s needs --http: it says who may connect there", name)
	}
	return cmp.Or(v.Check(settings.Watch()...), checkAddress(v.HTTP))
}

// operate calls run, and answers HTTP requests on the addresses of --http until run returns. Without --http,
// operate only calls run.
func operate(ctx context.Context, v *call, log *event.Log, run func(context.Context) error) error {
	if v.observer == nil {
		return run(ctx)
	}
	security, limits, err := protection(v)
	if err != nil {
		return err
	}
	s, err := serve.ListenOperations(ctx, serve.Options{
		HTTP: v.HTTP.Value, Operations: v.observer.Handler(), Registry: v.observer.Registry(), Security: security, Limits: limits, Log: log,
	})
	if err != nil {
		return err
	}
	v.observer.Protect(s.MayAsk)
	return s.RunWhile(ctx, run)
}
