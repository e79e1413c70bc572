package envoy

import (
	"context"
	"time"
)

// About describes a process of an Envoy.
type About struct {
	Bootstrap
	Version string // such as 1.40.0; empty if unknown
	// Started is the start by the clock of this machine, and StartedThere by the clock of the Envoy's machine; both
	// to the second, and zero if unknown.
	Started, StartedThere time.Time
	// Once means that the command line forbids hot restarts.
	Once bool
}

// About asks the Envoy for its bootstrap and its /server_info.
func (a *Admin) About(ctx context.Context) (*About, error) {
	s := a.session()
	defer s.close()
	b, err := s.startedWith(ctx, "bootstrap")
	if err != nil {
		return nil, err
	}
	info, err := s.serverInfo(ctx)
	if err != nil {
		return nil, err
	}
	return &About{Bootstrap: *b, Version: info.version, Started: info.started, StartedThere: b.Incarnation.time(), Once: info.once}, nil
}
