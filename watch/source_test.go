package watch

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"xdspub/event"
	"xdspub/render/publish"
	"xdspub/watch/notify"
	"xdspub/xds"
	"xdspub/xds/params"
	"xdspub/xds/variants"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
)

// hanging is a Confirmer whose Envoy doesn't answer until released.
type hanging struct{ released chan struct{} }

func (hanging) Before(context.Context, publish.Step) error { return nil }

func (h hanging) After(ctx context.Context, _ publish.Step) (answered bool, err error) {
	select {
	case <-h.released:
		return true, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// perEnvironment returns variants of a cluster for two environments, each with a timeout.
func perEnvironment(a, b int) string {
	text := ""
	for env, seconds := range map[string]int{"a": a, "b": b} {
		text += fmt.Sprintf("---\n{\"@type\": type.googleapis.com/envoy.service.discovery.v3.Resource, resource_name: {name: web, dynamic_parameter_constraints: {constraint: {key: env, value: %s}}}, "+
			"resource: {\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: web, connect_timeout: %ds}}\n", env, seconds)
	}
	return text
}

// environments returns the options of the targets a and b, and their logs.
func (s *site) environments() (all []Options, logs map[string]*heard) {
	logs = map[string]*heard{"a": {more: make(chan struct{}, 1)}, "b": {more: make(chan struct{}, 1)}}
	for _, name := range []string{"a", "b"} {
		o := s.o
		o.Target, o.Source.Client, o.Out = name, &variants.Client{Parameters: params.Parameters{"env": name}}, filepath.Join(s.o.Out, name)
		o.Log = event.New(slog.NewTextHandler(logs[name], nil)).For(name)
		all = append(all, o)
	}
	return all, logs
}

// TestTargetsDoNotWait checks that a target whose Envoy doesn't answer doesn't delay the others. When the
// Envoy answers, the newest snapshot is published.
func TestTargetsDoNotWait(t *testing.T) {
	s := newSite(t, perEnvironment(1, 1))
	all, logs := s.environments()
	slow := hanging{make(chan struct{})}
	all[0].Confirm = func(publish.Refusal) publish.Confirmer { return slow }
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Watch(ctx, all, WatchOptions{Watch: notify.Options{QuietPeriod: 10 * time.Millisecond, Rescan: time.Hour}})
	}()
	logs["b"].wait(t, "event=published target=b")
	for i := range 3 {
		s.write(perEnvironment(1, 2+i))
		logs["b"].wait(t, "event=published target=b")
	}
	s.write(perEnvironment(2, 5))
	logs["b"].wait(t, "event=published target=b")
	close(slow.released)
	logs["a"].wait(t, "event=published target=a")
	logs["a"].wait(t, "event=published target=a") // only the edit of its own variant
	s.write(perEnvironment(3, 5))
	logs["a"].wait(t, "event=published target=a")
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestServedVariants checks that the edit of a variant is served to the clients that get the variant, and
// logged, with or without files. The files have the variants of other clients.
func TestServedVariants(t *testing.T) {
	for _, out := range []bool{false, true} {
		s := newSite(t, perEnvironment(1, 1))
		log := &heard{more: make(chan struct{}, 1)}
		server := &critic{}
		if s.o.Server = server; !out {
			s.o.Out = ""
		}
		s.o.Log = event.New(slog.NewTextHandler(log, nil))
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- Watch(ctx, []Options{s.o}, WatchOptions{Watch: notify.Options{QuietPeriod: 10 * time.Millisecond, Rescan: time.Hour}})
		}()
		log.wait(t, "event=published")
		s.write(perEnvironment(1, 2))
		log.wait(t, "event=published")
		s.write("no resource")
		log.wait(t, "event=source-invalid")
		s.write(perEnvironment(1, 3))
		log.wait(t, "event=published")
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		var timeouts []string
		for _, r := range server.now.Of(xds.Cluster) {
			timeouts = append(timeouts, fmt.Sprint(r.Message().(*clusterv3.Cluster).GetConnectTimeout().GetSeconds()))
		}
		if slices.Sort(timeouts); !slices.Equal(timeouts, []string{"1", "3"}) {
			t.Error(timeouts)
		}
	}
}

// TestTargetThatCannotBegin adds a target to a running watch. Another process has locked the output directory
// of the target. The watch publishes the other targets, and the new target when its directory is free.
func TestTargetThatCannotBegin(t *testing.T) {
	s := newSite(t, perEnvironment(1, 1))
	all, logs := s.environments()
	other := New(all[1])
	if err := other.Open(); err != nil {
		t.Fatal(err)
	}
	o := WatchOptions{Watch: notify.Options{QuietPeriod: 10 * time.Millisecond, Rescan: time.Hour}}
	come := make(chan struct{}, 1)
	o.Reload = func() ([]Options, bool, error) {
		select {
		case <-come:
			return all, true, nil
		default:
			return nil, false, nil
		}
	}
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Watch(ctx, all[:1], o) }()
	logs["a"].wait(t, "event=published target=a")
	come <- struct{}{}
	s.write(perEnvironment(2, 2))
	logs["a"].wait(t, "event=published target=a")
	logs["b"].wait(t, "event=failed target=b")
	other.Close()
	s.write(perEnvironment(3, 3))
	logs["b"].wait(t, "event=published target=b")
	logs["a"].wait(t, "event=published target=a")
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
