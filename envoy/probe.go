package envoy

import (
	"context"
	"slices"
	"strings"
	"time"

	"xdspub/internal/parallel"
)

// Probe is the state of one Envoy while no file moves.
type Probe struct {
	URL string
	// Err is the reason for a missing answer. All fields except URL and Err are zero then.
	Err error
	Observation
	// States has the status of each subscription that the Envoy can have, in order. Status.Refusals counts
	// from the start of the Envoy.
	States []Status
}

// Runs reports whether the Envoy runs the version of every file that it subscribes to.
func (l Probe) Runs() bool {
	return l.Err == nil && !slices.ContainsFunc(l.States, func(s Status) bool { return s.State != Acked && s.StatPrefix != "" })
}

// ExcludedStats returns a *StatsExcludedError if a stats_matcher hides the statistics of a subscription that the
// Envoy must have: its bootstrap names the file, or the Envoy runs the entrypoint of the file.
func (l Probe) ExcludedStats() error {
	runs := make(map[string]bool)
	for _, s := range l.States {
		runs[s.File] = runs[s.File] || s.State == Acked
	}
	var stats []string
	for _, s := range l.States {
		if s.State == StatsExcluded && slices.ContainsFunc(s.Entrypoints, func(file string) bool { return file == s.File || runs[file] }) {
			for _, prefix := range s.StatPrefixes {
				stats = append(stats, strings.ReplaceAll(prefix, Any, "*"))
			}
		}
	}
	if len(stats) == 0 {
		return nil
	}
	return &StatsExcludedError{URL: l.URL, Stats: stats}
}

// DetailedProbe is a Probe with the names of refused listeners and warming clusters.
type DetailedProbe struct {
	Probe
	// Refused are the listeners that Envoy refused in its last read of their file.
	Refused []Refusal
	// Warming are the warming clusters, sorted.
	Warming []string
}

// Probe observes each Envoy once, concurrently, and returns the status of files that do not move.
//
// An answering Envoy has read all files that were renamed before Probe. One thread of Envoy gets the events of
// renames, accepts connections and answers requests, and the request for statistics is never the first request of a
// connection.
func (f *Fleet) Probe(ctx context.Context, subs []Subscription) []Probe {
	ctx, cancel := context.WithTimeout(ctx, f.o.AckTimeout)
	defer cancel()
	return sideBySide(f.o.Admins, func(a *Admin) Probe { return f.probe(ctx, a, subs) })
}

// ProbeInDetail is Probe with questions about refused listeners and warming clusters.
func (f *Fleet) ProbeInDetail(ctx context.Context, subs []Subscription) []DetailedProbe {
	ctx, cancel := context.WithTimeout(ctx, f.o.AckTimeout)
	defer cancel()
	return sideBySide(f.o.Admins, func(a *Admin) DetailedProbe { return f.probeInDetail(ctx, a, subs) })
}

// sideBySide calls probe for each Envoy concurrently, and returns the results in order.
func sideBySide[T any](admins []*Admin, probe func(*Admin) T) []T {
	probes := make([]T, len(admins))
	var wg parallel.Group
	for i, admin := range admins {
		wg.Go(func() { probes[i] = probe(admin) })
	}
	wg.Wait()
	return probes
}

func (f *Fleet) probe(ctx context.Context, a *Admin, subs []Subscription) Probe {
	observation, err := a.Read(ctx, statPrefixesOf(subs))
	if err == nil {
		err = f.claim(ctx, a, observation.Incarnation)
	}
	if err != nil {
		return Probe{URL: a.url, Err: err}
	}
	f.remember(a, observation)
	return f.probeOf(a, observation, subs)
}

// probeOf returns the Probe of an observation.
func (f *Fleet) probeOf(a *Admin, observation *Observation, subs []Subscription) Probe {
	l := Probe{URL: a.url, Observation: *observation}
	subscribed := observation.subscribed(subs, f.o.Dir)
	versions := observation.versionsByPrefix(subscribed)
	for _, s := range subscribed {
		l.States = append(l.States, s.probeStatus(observation, versions))
	}
	return l
}

func (f *Fleet) probeInDetail(ctx context.Context, a *Admin, subs []Subscription) DetailedProbe {
	l := DetailedProbe{Probe: f.probe(ctx, a, subs)}
	if l.Err == nil && slices.ContainsFunc(l.States, func(s Status) bool { return s.API == "LDS" }) {
		l.Refused, l.Err = a.Refusals(ctx, time.Time{})
	}
	if l.Err == nil && l.WarmingClusters > 0 {
		l.Warming, l.Err = a.Warming(ctx)
	}
	if l.Err != nil {
		return DetailedProbe{Probe: Probe{URL: l.URL, Err: l.Err}}
	}
	return l
}

// probeStatus returns the status of a file that does not move. The status is Refused if the Envoy runs another
// version, and has refused any version since its start.
func (s Subscription) probeStatus(o *Observation, versions map[string][]string) Status {
	status := Status{Subscription: s}
	acked := false
	for _, prefix := range o.statPrefixes(s) {
		c := o.Counters[prefix]
		runs := c.Version != "" && contains(versions[prefix], c.Version)
		if status.StatPrefix == "" || runs {
			status.StatPrefix, status.Runs = prefix, c.Version
		}
		acked = acked || runs
		status.Refusals += c.Rejections + c.Failures
	}
	switch {
	case status.StatPrefix == "" && o.Matcher:
		status.State = StatsExcluded
	case status.StatPrefix == "":
	case acked:
		status.State = Acked
	case status.Refusals > 0:
		status.State = Refused
	}
	return status
}
