package status

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"xdspub/envoy"
	"xdspub/xds"
)

// subscriptions returns the subscriptions to the published files. A published file without a subscription
// gets an entry without statistics. differ lists the files that differ from the record. missing lists files
// that have a subscription and do not exist.
func (m *diskState) subscriptions(differ []string) (list []envoy.Subscription, missing []string, err error) {
	st, err := m.out.State()
	if err != nil {
		return nil, nil, err
	}
	layers, _, err := m.out.Layers(st.Files)
	if err != nil {
		return nil, nil, err
	}
	changed, files := setOf(differ), setOf(st.Files)
	for _, sub := range m.out.Subscribers(st.Clusters, st.Listeners, layers).All {
		name := sub.File
		if !changed[name] && !files[name] {
			missing = append(missing, name)
		}
		list = append(list, sub.Expect(m.version(name, changed[name]), true))
	}
	slices.Sort(missing)
	missing = slices.Compact(missing)
	if m.intent == nil { // else the running change may remove files
		maps.Copy(files, changed)
	}
	for _, g := range m.manifest.Retired {
		delete(files, g.File) // draining listeners may still have a subscription
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if t := typeOf(name); t != nil {
			list = append(list, envoy.Subscription{
				File: name, API: t.API, Version: m.version(name, changed[name]), Entrypoints: m.entrypoints(t), Unmoved: true,
			})
		}
	}
	return list, missing, nil
}

func setOf(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

// version returns the version_info of a published file. During a change the record lacks the moved files, so
// version reads the file itself.
func (m *diskState) version(name string, differs bool) string {
	if was, ok := m.manifest.Files.Get(name); ok && (!differs || m.intent == nil) {
		return was.Version
	}
	return m.out.VersionInfo(name)
}

// typeOf returns the type of the resources in a published file; nil for unknown paths.
func typeOf(name string) *xds.Type {
	api, _, _ := strings.Cut(name, "/")
	i := slices.IndexFunc(xds.Types, func(t *xds.Type) bool { return strings.ToLower(t.API) == api })
	if i < 0 {
		return nil
	}
	return xds.Types[i]
}

// entrypoints returns the files from which an Envoy can learn about files of a type. Runtime layers come from
// the bootstrap instead.
func (m *diskState) entrypoints(t *xds.Type) []string {
	all := xds.Entrypoints
	if t != nil {
		all = t.Entrypoints
	}
	if slices.Contains(xds.Entrypoints, t) {
		all = []*xds.Type{t}
	}
	var files []string
	for _, of := range all {
		files = append(files, m.out.Format().Path(of, ""))
	}
	return files
}

// envoys asks the Envoys.
func (m *diskState) envoys(ctx context.Context, admins []*envoy.Admin, subs []envoy.Subscription, drifted []string) ([]EnvoyReport, error) {
	fleet := envoy.NewFleet(envoy.FleetOptions{Admins: admins, Dir: m.manifest.EnvoyPath})
	var list []EnvoyReport
	var wrong []error
	edited := setOf(drifted)
	for _, probe := range fleet.ProbeInDetail(ctx, subs) {
		e, err := reportOf(probe, edited)
		if err != nil {
			e.Err, e.Error = err, err.Error()
		}
		list, wrong = append(list, e), append(wrong, err)
	}
	return list, errors.Join(wrong...)
}

func reportOf(l envoy.DetailedProbe, drifted map[string]bool) (EnvoyReport, error) {
	e := EnvoyReport{URL: l.URL, WarmingClusters: []string{}, Subscriptions: []Row{}}
	if l.Err != nil {
		if !envoy.Unreachable(l.Err) {
			return e, l.Err
		}
		e.Err, e.Error = l.Err, l.Err.Error()
		_, e.Down = errors.AsType[*envoy.DownError](l.Err)
		return e, nil
	}
	e.State = l.State
	e.DrainingListeners, e.DrainingFilterChains = l.DrainingListeners, l.DrainingFilterChains
	e.WarmingListeners, e.WarmingClusters = l.WarmingListeners, append(e.WarmingClusters, l.Warming...)
	has := make(map[string]bool)
	for i, s := range l.States {
		has[s.File] = has[s.File] || len(s.StatPrefixes) > 0
		if drifted[s.File] {
			l.States[i].State = envoy.Pending // the Envoy can't run the edited file's version
		}
	}
	for _, s := range l.States {
		if len(s.StatPrefixes) == 0 && has[s.File] {
			continue
		}
		row := rowOf(s, drifted[s.File])
		if reasons := refusedListeners(l.Refused); s.API == xds.Listener.API && len(reasons) > 0 && row.Sync != Drifted {
			row.Sync, row.Reasons = Rejected, reasons
		}
		e.Subscriptions = append(e.Subscriptions, row)
	}
	slices.SortStableFunc(e.Subscriptions, func(a, b Row) int { return strings.Compare(a.File, b.File) })
	return e, l.ExcludedStats()
}

func rowOf(s envoy.Status, drifted bool) Row {
	row := Row{
		Sync: Stale, API: s.API, Name: s.Name, File: s.File, Version: s.Version,
		Runs: s.Runs, Stats: s.StatPrefix, Refusals: s.Refusals, Reasons: []string{},
	}
	switch {
	case drifted:
		row.Sync = Drifted
	case s.StatPrefix == "":
		row.Sync = NotSent
	case s.State == envoy.Acked:
		row.Sync = Synced
	case s.State == envoy.Refused:
		row.Sync = Rejected
	}
	return row
}

func refusedListeners(list []envoy.Refusal) []string {
	var reasons []string
	for _, r := range list {
		reasons = append(reasons, fmt.Sprintf("listener %q: %s", r.Resource, r.Message))
	}
	return reasons
}
