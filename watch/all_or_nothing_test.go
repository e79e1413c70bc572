package watch

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"xdspub/render/publish"
	"xdspub/watch/notify"
)

// rejecting is a Confirmer whose Envoy rejects each step while on is set.
type rejecting struct {
	on *atomic.Bool
	of publish.Refusal
}

func (rejecting) Before(context.Context, publish.Step) error { return nil }

func (r rejecting) After(_ context.Context, s publish.Step) (answered bool, err error) {
	if !r.on.Load() {
		return true, nil
	}
	r.of.Time, r.of.Step = now(), s.Name
	return true, &publish.RefusedError{Refusal: r.of}
}

// ports returns variants of a listener for the environments a and b, each with or without reuse_port, and
// variants of a cluster with the timeouts a and b.
func ports(aReuses, bReuses bool, a, b int) string {
	text := perEnvironment(a, b)
	for env, reuses := range map[string]bool{"a": aReuses, "b": bReuses} {
		text += fmt.Sprintf("---\n{\"@type\": type.googleapis.com/envoy.service.discovery.v3.Resource, resource_name: {name: edge, dynamic_parameter_constraints: {constraint: {key: env, value: %s}}}, "+
			"resource: {\"@type\": type.googleapis.com/envoy.config.listener.v3.Listener, name: edge, enable_reuse_port: %t, address: {socket_address: {address: 0.0.0.0, port_value: 443}}, "+
			"filter_chains: [{filters: [{name: echo, typed_config: {\"@type\": type.googleapis.com/envoy.extensions.filters.network.echo.v3.Echo}}]}]}}\n", env, reuses)
	}
	return text
}

// TestAllOrNothing checks that AllOrNothing publishes no target while one target has errors in the tree or
// the plan, or a rejected snapshot.
func TestAllOrNothing(t *testing.T) {
	s := newSite(t, ports(true, true, 1, 1))
	all, logs := s.environments()
	var rejects atomic.Bool
	for i := range all {
		all[i].AllOrNothing = true
	}
	all[1].Confirm = func(of publish.Refusal) publish.Confirmer { return rejecting{&rejects, of} }
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Watch(ctx, all, WatchOptions{Watch: notify.Options{QuietPeriod: 10 * time.Millisecond, Rescan: time.Hour}})
	}()
	published := func() {
		t.Helper()
		logs["a"].wait(t, "event=published target=a")
		logs["b"].wait(t, "event=published target=b")
	}
	published()

	s.write(ports(true, false, 2, 2))
	logs["b"].wait(t, "code=reuse-port-changed")
	logs["b"].wait(t, "event=source-invalid target=b")
	logs["a"].wait(t, "target b is refused, and so are all: 1 error")
	logs["a"].wait(t, "event=source-invalid target=a")
	s.write(ports(true, true, 2, 2))
	published()

	s.write(ports(true, true, -1, 3)) // an invalid timeout
	logs["a"].wait(t, "event=source-invalid target=a")
	logs["b"].wait(t, "target a is refused, and so are all: 1 error")
	s.write(ports(true, true, 3, 3))
	published()

	rejects.Store(true)
	s.write(ports(true, true, 3, 4))
	logs["b"].wait(t, "event=rolled-back target=b")
	rejects.Store(false)
	s.write(ports(true, true, 4, 4))
	logs["a"].wait(t, "target b is refused, and so are all: Envoy rejected its snapshot")
	s.write(ports(true, true, 5, 5))
	published()
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestAllOrNothingWithoutOne checks that a target whose output directory is locked by another process doesn't
// block the others, even with AllOrNothing.
func TestAllOrNothingWithoutOne(t *testing.T) {
	s := newSite(t, perEnvironment(1, 1))
	all, logs := s.environments()
	for i := range all {
		all[i].AllOrNothing = true
	}
	other := New(all[1])
	if err := other.Open(); err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Watch(ctx, all, WatchOptions{Watch: notify.Options{QuietPeriod: 10 * time.Millisecond, Rescan: time.Hour}})
	}()
	for i := range 3 {
		logs["a"].wait(t, "event=published target=a")
		s.write(perEnvironment(2+i, 2))
	}
	logs["a"].wait(t, "event=published target=a")
	other.Close()
	s.write(perEnvironment(9, 9))
	logs["b"].wait(t, "event=published target=b")
	logs["a"].wait(t, "event=published target=a")
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
