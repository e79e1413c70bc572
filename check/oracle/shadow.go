package oracle

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"xdspub/envoy"
	"xdspub/envoy/trial"
	"xdspub/render"
	"xdspub/render/published"
	"xdspub/setup/bootstrap"
	"xdspub/source/load"
	"xdspub/xds"
)

// often is the pause between two questions to an Envoy that is starting.
const often = 5 * time.Millisecond

// shadow is a throw-away Envoy that loads files.
type shadow struct {
	folded   *folded
	snapshot *xds.Snapshot
	dir      string
	files    []render.File
	probe    envoy.DetailedProbe // the Envoy's answer after it has read all files
}

// load makes a throw-away Envoy load the snapshot, and adds the resources that it refuses to a verdict. So Envoy
// also judges resources that can't be static.
func (s *shadow) load(ctx context.Context, e trial.Envoy, v *verdict) error {
	once := func() (trial.Answer, string, error) {
		return e.Load(ctx, trial.Throwaway{
			Prepare: func(dir string) (string, error) { return s.prepare(ctx, dir) },
			Ask:     s.ask,
		})
	}
	answer, log, err := once()
	if err == nil && answer.Hang != "" { // the machine may have been busy
		answer, log, err = once()
	}
	if err != nil {
		return err
	}
	v.rest = answer
	if answer.Taken() {
		s.refused(v, envoy.ParseLog(log))
	}
	return nil
}

// prepare writes the files that the Envoy loads into a directory. It returns the path of the bootstrap.
func (s *shadow) prepare(ctx context.Context, dir string) (path string, err error) {
	var r render.Renderer
	out, list := r.Render(ctx, s.snapshot, render.Target{EnvoyPath: dir})
	if out == nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", fmt.Errorf("write the files for Envoy: %s", list[0].Message)
	}
	s.dir, s.files = dir, out.Files
	for _, f := range s.files {
		if err := write(filepath.Join(dir, filepath.FromSlash(f.Path)), f.Data); err != nil {
			return "", err
		}
	}
	text, err := s.bootstrap()
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "envoy.json")
	return path, write(path, text)
}

func write(path string, data []byte) error {
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	return err
}

// bootstrap returns the bootstrap that the throw-away Envoy starts with: the bootstrap that xdspub writes for the
// files, and the static resources that other resources refer to.
func (s *shadow) bootstrap() ([]byte, error) {
	base, read := bootstrap.Read(load.Input{Envoy: s.folded.version, Name: "envoy.json", Format: "json", Data: s.folded.surroundings()})
	if base == nil {
		return nil, fmt.Errorf("the bootstrap for a throw-away Envoy: %s", read.Diagnostics[0].Message)
	}
	o := bootstrap.EnvoyOptions{Dir: s.dir, NodeID: "xdspub", NodeCluster: "xdspub", Admin: "unix:" + s.socket()}
	if node := s.folded.candidate.Bootstrap.GetNode(); node != nil {
		o.NodeID, o.NodeCluster = node.GetId(), node.GetCluster()
	}
	for _, f := range s.files {
		if f.Type == xds.Runtime {
			o.RuntimeLayers = append(o.RuntimeLayers, bootstrap.RuntimeLayer{Name: f.Name, Folder: filepath.Base(filepath.Dir(f.Path))})
		}
	}
	text, conflicts, err := base.Merge(o)
	if len(conflicts) > 0 {
		err = fmt.Errorf("the bootstrap for a throw-away Envoy: %s", conflicts[0].Message)
	}
	return text, err
}

func (s *shadow) socket() string { return filepath.Join(s.dir, "admin") }

// ask polls the Envoy until it has read all files.
func (s *shadow) ask(ctx context.Context) error {
	admin, err := envoy.NewAdmin("unix:" + s.socket())
	if err != nil {
		return err
	}
	fleet := envoy.NewFleet(envoy.FleetOptions{Admins: []*envoy.Admin{admin}, Dir: s.dir})
	subs := s.subscriptions()
	for {
		if _, err := os.Stat(s.socket()); err == nil {
			s.probe = fleet.ProbeInDetail(ctx, subs)[0]
			if s.probe.Err == nil && s.probe.State == "LIVE" {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(often):
		}
	}
}

// subscriptions returns the subscriptions of the Envoy, with the versions of the files.
func (s *shadow) subscriptions() (list []envoy.Subscription) {
	var clusters, listeners []*xds.Resource
	var layers []string
	versions := make(map[string]string)
	for _, f := range s.files {
		versions[f.Path] = f.Version
		switch f.Type {
		case xds.Cluster:
			clusters = f.Resources
		case xds.Listener:
			listeners = f.Resources
		case xds.Runtime:
			layers = append(layers, f.Name)
		}
	}
	for _, sub := range published.New(published.Options{Dir: s.dir, Envoy: s.folded.candidate.Envoy}).Subscribers(clusters, listeners, layers).All {
		list = append(list, sub.Expect(versions[sub.File], true))
	}
	return list
}

// refused adds the resources that the Envoy refused to a verdict. logged are the refusals in the Envoy's log, which
// have the reasons.
func (s *shadow) refused(v *verdict, logged []envoy.Refusal) {
	for _, state := range s.probe.States {
		said := s.probe.Refused
		if state.API != xds.Listener.API || len(said) == 0 {
			if state.State != envoy.Refused {
				continue
			}
			said = reasons(state.Subscription, logged)
		}
		for _, refusal := range said {
			r := s.named(state.File, refusal.Resource)
			if r == nil {
				v.rest = trial.Answer{Refusal: refusal.Message}
			} else if !slices.ContainsFunc(v.faults, func(f fault) bool { return f.of == r }) {
				v.faults = append(v.faults, fault{&item{of: r}, trial.Answer{Refusal: refusal.Message}})
			}
		}
	}
}

// reasons returns the refusals in a log that concern a subscription. A refusal without a name may concern any
// resource of the subscription.
func reasons(of envoy.Subscription, logged []envoy.Refusal) (said []envoy.Refusal) {
	var may []string
	for _, r := range logged {
		switch {
		case r.API == of.API && r.Resource != "" && (of.Name == "" || r.Resource == of.Name):
			said = append(said, r)
		case (r.API == of.API || r.API == "") && r.Resource == "" && !slices.Contains(may, r.Message):
			may = append(may, r.Message)
		}
	}
	if len(said) == 0 {
		why := strings.Join(may, "; or: ")
		said = append(said, envoy.Refusal{Resource: of.Name, Message: cmp.Or(why, "it does not say why")})
	}
	return said
}

// named returns the resource of the Candidate that a published file has under a name, or nil.
func (s *shadow) named(file, name string) *xds.Resource {
	for _, f := range s.files {
		if f.Path != file {
			continue
		}
		if r := s.folded.candidate.Snapshot.Lookup(f.Type, name); r != nil {
			return r
		}
	}
	return nil
}
