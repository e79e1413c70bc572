package observe

import (
	"errors"
	"regexp"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	dto "github.com/prometheus/client_model/go"

	"xdspub/diag"
	"xdspub/event"
	"xdspub/internal/crash"
	"xdspub/watch/control"
	"xdspub/xds/clients"
)

// mostOwners is the number of held owners that have a metric.
const mostOwners = 100

// metrics counts events and passes. The other metrics follow from the state at each scrape. No label holds the name
// of a resource or of a client, so that neither can multiply the series. The owner of a folder is a label while the
// folder has errors.
type metrics struct {
	events *prometheus.CounterVec   // by event
	passes *prometheus.CounterVec   // by target and result
	stages *prometheus.HistogramVec // by target and stage
}

func newMetrics(o *Observer) *metrics {
	m := &metrics{
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "xdspub_events_total", Help: "Events, at all levels of the log.",
		}, []string{"event"}),
		passes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "xdspub_passes_total", Help: "Passes over the source tree that have ended, by their result.",
		}, []string{"target", "result"}),
		stages: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "xdspub_stage_duration_seconds", Help: "Time of a stage of a pass.", Buckets: prometheus.ExponentialBuckets(0.001, 4, 9),
		}, []string{"target", "stage"}),
	}
	for _, name := range event.Names() { // a counter that begins at 1 would hide its first event from increase()
		m.events.WithLabelValues(name)
	}
	o.registry.MustRegister(m.events, m.passes, m.stages, stateCollector{o},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// forget removes the metrics of a target.
func (m *metrics) forget(target string) {
	m.passes.DeletePartialMatch(prometheus.Labels{"target": target})
	m.stages.DeletePartialMatch(prometheus.Labels{"target": target})
}

// passed counts a pass.
func (m *metrics) passed(target string, p *control.Reconcile) {
	m.passes.WithLabelValues(target, string(p.Outcome)).Inc()
	for _, s := range p.Stages {
		m.stages.WithLabelValues(target, s.Name).Observe(s.Seconds)
	}
}

// stateCollector collects the metrics that follow from the state of the targets and of the clients.
type stateCollector struct{ observer *Observer }

// Describe describes nothing: the label target is missing without targets.
func (stateCollector) Describe(chan<- *prometheus.Desc) {}

// gather collects all metrics. If a collector panicked, gather panics, so that the panic is that of the request.
func (o *Observer) gather() ([]*dto.MetricFamily, error) {
	list, err := o.registry.Gather()
	all, several := errors.AsType[prometheus.MultiError](err)
	if !several {
		all = prometheus.MultiError{err}
	}
	for _, err := range all {
		if e, ok := errors.AsType[*crash.Error](err); ok {
			panic(e)
		}
	}
	return list, err
}

// sample writes one metric. Names and values of labels follow the value; an empty target is left out.
type sample func(name, help string, value float64, labels ...string)

// Collect collects the values.
func (c stateCollector) Collect(to chan<- prometheus.Metric) {
	defer func() { // the library calls Collect on a goroutine of its own
		if value := recover(); value != nil {
			e := crash.Of(value)
			to <- prometheus.NewInvalidMetric(prometheus.NewInvalidDesc(e), e)
		}
	}()
	write := func(name, help string, value float64, labels ...string) {
		with := make(prometheus.Labels)
		for i := 0; i < len(labels); i += 2 {
			if labels[i] != "target" || labels[i+1] != "" {
				with[labels[i]] = labels[i+1]
			}
		}
		to <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, nil, with), prometheus.GaugeValue, value)
	}
	write("xdspub_build_info", "1, with the version of the program.", 1, "version", c.observer.options.Version, "goversion", runtime.Version())
	for _, v := range c.observer.views() {
		v.sample(func(name, help string, value float64, labels ...string) {
			write(name, help, value, append(labels, "target", v.name)...)
		})
	}
	if s := c.observer.served(); s != nil {
		sampleClients(s.Clients(), write)
	}
}

// sample writes the metrics of a target.
func (v *view) sample(write sample) {
	w := &v.watch
	write("xdspub_source_valid", "1 if the source tree, as read last, is published or waits for an operator or the end of a freeze; 0 if the tree is invalid or held, or can't be read or published.",
		truth(w.Refused == nil && w.Failed == "" && w.Snapshot != ""))
	if u := w.Upstream; u != nil {
		since := u.StaleSince
		if since.IsZero() {
			since = u.Since
		}
		write("xdspub_upstream_connected", "1 while xdspub follows the control plane or the store that is its source.", truth(u.StaleSince.IsZero()))
		write("xdspub_upstream_since_time_seconds", "Since when xdspub_upstream_connected has its value, in seconds since 1970. A connection of less than 10s ends no outage of a control plane.", seconds(since))
	}
	if s := w.Store; s != nil {
		write("xdspub_store_failed", "1 while xdspub can't write the published snapshot into the store of --store.", truth(s.Error != ""))
	}
	if r := w.Rollout(); r != nil {
		write("xdspub_rollout_wave", "The last wave that has the snapshot of the rollout, from 1; 0 before the first.", float64(r.Wave))
		for _, state := range control.RolloutStates() {
			write("xdspub_rollout_state", "1 for what the rollout waits for, or for taken-back; 0 for the others.", truth(r.State == state), "state", string(state))
		}
	}
	write("xdspub_paused", "1 while an operator pauses publishing.", truth(w.Paused != nil))
	write("xdspub_pinned", "1 while a snapshot of the history is pinned, by a rollback.", truth(w.Pinned != nil))
	write("xdspub_frozen", "1 during a freeze of the settings, in which changes of the source tree wait.", truth(w.Frozen != nil))
	write("xdspub_guarded", "1 while a change that removes too much waits for an approval.", truth(w.Guarded != nil))
	write("xdspub_approved", "1 while an approval waits for its change.", truth(w.Approved != nil))
	if w.Trial != nil {
		write("xdspub_confirm_until_time_seconds", "When the published snapshot is undone unless an operator confirms it, in seconds since 1970.",
			seconds(w.Trial.Until))
	}
	write("xdspub_undo_overdue", "1 while a snapshot stays published that should have been undone: nobody has confirmed it in time, or an operator has cancelled it.",
		truth(w.TrialAt(time.Now()).IsFault()))
	if w.Waits != nil {
		write("xdspub_waits_since_time_seconds", "Since when a valid snapshot of the source tree waits for an operator or the end of a freeze, in seconds since 1970.",
			seconds(w.Waits.Since))
	}
	errors := 0
	if w.Refused != nil {
		errors = w.Refused.Errors
		by := "validation"
		if w.Refused.Snapshot != "" {
			by = "envoy"
		}
		write("xdspub_refused_since_time_seconds", "Since when the source tree is refused, by validation or by an Envoy or a client, in seconds since 1970.",
			seconds(w.Refused.Since), "by", by)
		if p := w.Refused.Part; p != nil {
			write("xdspub_refused_part", "1 if faultless changes of a refused source tree are published (--while-refused), 0 if they wait, too.",
				truth(p.Waits == ""))
			write("xdspub_held_owners", "Owners whose folders are published as they were last valid (the setting owners).", float64(len(p.Held)))
			for _, h := range p.Held[:min(len(p.Held), mostOwners)] {
				write("xdspub_owner_held_since_time_seconds", "Since when the folder of an owner is published as it was last valid, in seconds since 1970.",
					seconds(h.Since), "owner", diag.Printable(h.Owner))
			}
		}
	}
	write("xdspub_source_errors", "Errors that prevent publishing the source tree.", float64(errors))
	write("xdspub_source_failed", "1 if the source tree can't be read or published.", truth(w.Failed != ""))
	for _, c := range w.Checked.Counts {
		write("xdspub_source_findings", "Findings in the source tree, by code.", float64(c.Count), "severity", c.Severity.String(), "code", c.Code)
	}
	for api, n := range w.Checked.Resources {
		write("xdspub_resources", "Resources of the source tree for the output directory, or for a client without parameters.", float64(n), "type", api)
	}
	for api, n := range w.Checked.Variants {
		write("xdspub_variants", "Resources of the source tree, with all variants.", float64(n), "type", api)
	}
	const certificates = "Certificates of the source tree that peers reject now, or that expire soon."
	write("xdspub_source_certificates", certificates, float64(len(w.Certificates.OutOfDate)), "state", "out-of-date")
	write("xdspub_source_certificates", certificates, float64(len(w.Certificates.ExpireSoon)), "state", "expires-soon")
	if !w.CertificateExpires.IsZero() {
		write("xdspub_snapshot_certificate_expiry_time_seconds",
			"When the first certificate of the published snapshot expires, in seconds since 1970.", seconds(w.CertificateExpires))
	}
	if w.Inotify != nil {
		write("xdspub_inotify_instances", "Inotify instances that an Envoy needs for the published files.", float64(w.Inotify.Used))
		write("xdspub_inotify_budget", "Limit of xdspub_inotify_instances (--inotify-budget).", float64(w.Inotify.Budget))
	}
	for _, by := range control.AllNotices() {
		write("xdspub_watch_mode", "1 for the way in which the watch learns of changes of the source tree, 0 for the others.",
			truth(w.Notices == by), "mode", string(by))
	}
	if w.Snapshot != "" {
		write("xdspub_snapshot_info", "1, with the id of the published snapshot and the git commit of the source tree, as read last.", 1,
			"snapshot", w.Snapshot, "revision", w.Revision)
	}
	if !w.SnapshotSince.IsZero() {
		write("xdspub_snapshot_time_seconds", "When the watch published the snapshot, in seconds since 1970.", seconds(w.SnapshotSince))
	}
	if !v.succeeded.IsZero() {
		write("xdspub_last_success_time_seconds", "When the source tree was last found published, in seconds since 1970.", seconds(v.succeeded))
	}
	write("xdspub_snapshot_unconfirmed", "1 if Envoys, or the quorum of clients, have not acknowledged the published snapshot.", truth(w.Unconfirmed != ""))
	if w.Running != nil {
		write("xdspub_pass_began_time_seconds", "When the running pass began, in seconds since 1970.", seconds(w.Running.Began))
	}
	envoys := make(map[control.RunState]int)
	for _, e := range w.EnvoyStates {
		envoys[e.State]++
	}
	for _, state := range control.RunStates() {
		if len(w.EnvoyStates) > 0 {
			write("xdspub_envoys", "Envoys of --envoy-admin, by what they run.", float64(envoys[state]), "state", string(state))
		}
	}
}

// mostPrograms is the number of client programs with a label of their own: clients choose the text.
const mostPrograms = 20

// program matches the user agents that get a label.
var program = regexp.MustCompile(`^[a-zA-Z][a-zA-Z -]{0,29} [0-9]+(\.[0-9]+){0,3}$`)

// sampleClients writes the number of clients by program, kind and state.
func sampleClients(list []clients.Client, write sample) {
	type group struct{ program, kind, state string }
	counts, programs := make(map[group]int), make(map[string]bool)
	for i := range list {
		c := &list[i]
		if !c.Gone.IsZero() {
			continue
		}
		of := group{"other", c.Kind, "behind"}
		if c.Count(clients.Rejected) > 0 {
			of.state = "rejected"
		}
		if program.MatchString(c.UserAgent) && (programs[c.UserAgent] || len(programs) < mostPrograms) {
			programs[c.UserAgent] = true
			of.program = c.UserAgent
		}
		if c.InSync() {
			of.state = string(control.InSync)
		}
		counts[of]++
	}
	for of, n := range counts {
		write("xdspub_clients", "Connected clients.", float64(n), "program", of.program, "kind", of.kind, "state", of.state)
	}
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
