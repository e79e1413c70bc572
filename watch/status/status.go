// Package status reports the published snapshot, and whether Envoys run it.
//
//	report, err := status.Of(ctx, status.Options{Out: "out", Admins: admins})
package status

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"reflect"
	"slices"
	"syscall"

	"xdspub/diag"
	"xdspub/envoy"
	"xdspub/render"
	"xdspub/render/history"
	"xdspub/render/publish"
	"xdspub/render/published"
	"xdspub/watch/control"
	"xdspub/watch/freeze"
	"xdspub/watch/operator"
	"xdspub/xds"
)

// Options configure a Report.
type Options struct {
	// Out is the output directory.
	Out string
	// MayBeMissing permits a missing output directory, which then counts as empty. Otherwise it is an error.
	MayBeMissing bool
	// Admins are the Envoys to ask. Without Admins, the Report covers only the directory.
	Admins []*envoy.Admin
	// Disable lists the codes of disabled validation rules.
	Disable []string
	// Lenient makes an Envoy whose answers allow no verdict a part of the Report (EnvoyReport.Err). Otherwise it is an
	// error.
	Lenient bool
	// Freeze has the times in which a change is not published, for Ask.
	Freeze freeze.Windows

	dates func(context.Context, *xds.Snapshot) diag.List // finds certificates out of date; nil to skip the check
	// Registry has additional message types for the files; nil means only Envoy's API.
	Registry *xds.Registry
}

// tries is the largest number of Reports that Of makes while files move.
const tries = 5

// Of reports the published snapshot, and whether Envoys run it. Of takes no lock and changes nothing, so it works
// beside a running writer and after a killed one.
//
// Of returns an error if the directory can't be read or a record is damaged. Of also returns an error if an
// admin interface does not belong to an Envoy, excludes statistics, or belongs to an Envoy with another
// directory. An Envoy that is down or doesn't answer in time is part of the Report, not an error.
func Of(ctx context.Context, o Options) (*Report, error) {
	before, err := readDiskState(o)
	if err != nil {
		return nil, err
	}
	for n := 1; ; n++ {
		r, wrong := before.report(ctx, o)
		after, err := readDiskState(o)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			return nil, err
		}
		moved := before.moved(after)
		switch {
		case n < tries && (len(moved) > 0 || !before.sameRecords(after)):
			before = after // the answers of the Envoys may be about both states
		case wrong != nil && (!o.Lenient || r == nil):
			return nil, wrong
		default:
			r.downgradeMoved(moved)
			r.setInSync()
			return r, nil
		}
	}
}

// diskState holds the records and the files of an output directory at one time.
type diskState struct {
	out      *published.Reader // with the recorded options; nil without a record
	manifest publish.Manifest
	intent   *publish.Intent
	refused  publish.Refused
	decided  control.Decisions
	guarded  *control.Guarded
	approved *control.Shown
	files    map[string]publish.Info
	state    bool          // the directory is that of serve --state
	served   *history.Item // of the last served snapshot; nil for none, or with an output directory
}

// lastServed returns the entry of the snapshot that was served last; nil for none.
func lastServed(state string) (*history.Item, error) {
	h, err := history.Read(state)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	if i, ok := h.Latest(); ok {
		return &i, nil
	}
	return nil, nil
}

func readDiskState(o Options) (*diskState, error) {
	out := o.Out
	switch info, err := os.Stat(out); {
	case errors.Is(err, fs.ErrNotExist) && o.MayBeMissing:
		return &diskState{}, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("output directory %s: no such directory; xdspub render and xdspub watch create it", out)
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, &os.PathError{Op: "status", Path: out, Err: syscall.ENOTDIR}
	}
	m := &diskState{}
	var err error
	if m.manifest, err = publish.ReadManifest(out); err != nil {
		return nil, err
	}
	if m.intent, err = publish.ReadIntent(out); err != nil {
		return nil, err
	}
	if m.decided, err = operator.ShownIn(out); err != nil {
		return nil, err
	}
	if m.guarded, m.approved, err = operator.GuardedIn(out); err != nil {
		return nil, err
	}
	if m.state = m.manifest.Layout == 0 && operator.IsServer(out); m.state {
		m.served, err = lastServed(out)
		return m, err
	}
	if m.refused, err = publish.ReadRefused(out); err != nil || m.manifest.Layout == 0 {
		return m, err
	}
	format := render.FormatNamed(m.manifest.Format)
	if format == nil {
		return nil, fmt.Errorf("%s was published in the format %q, which this xdspub does not know: use the version that published it", out, m.manifest.Format)
	}
	files := published.Options{Dir: out, EnvoyPath: m.manifest.EnvoyPath, Format: format}
	files.Envoy = files.Envoy.With(o.Registry)
	m.out = published.New(files)
	m.files, err = published.Files(out, format)
	return m, err
}

// Reader returns a Reader of an output directory with the recorded options; nil if nothing is published.
func Reader(o Options) (*published.Reader, error) {
	m, err := readDiskState(o)
	if err != nil {
		return nil, err
	}
	return m.out, nil
}

// Snapshot returns the published Snapshot of an output directory, or an empty Snapshot. The directory of serve --state
// is an error.
func Snapshot(o Options) (*xds.Snapshot, error) {
	m, err := readDiskState(o)
	switch {
	case err != nil:
		return nil, err
	case m.state:
		return nil, fmt.Errorf("%s is the directory of serve --state, and has no published files: xdspub history --out %[1]s export ID DIR writes what was served", o.Out)
	case m.out == nil:
		return xds.NewSnapshot(nil), nil
	}
	return m.out.Snapshot()
}

// moved returns the files that differ between two states.
func (m *diskState) moved(after *diskState) map[string]bool {
	moved := make(map[string]bool)
	for name, was := range m.files {
		if is, ok := after.files[name]; !ok || is != was {
			moved[name] = true
		}
	}
	for name := range after.files {
		if _, ok := m.files[name]; !ok {
			moved[name] = true
		}
	}
	return moved
}

func (m *diskState) sameRecords(after *diskState) bool {
	return reflect.DeepEqual(m.manifest, after.manifest) && reflect.DeepEqual(m.intent, after.intent) && reflect.DeepEqual(m.refused, after.refused)
}

// report returns the Report for this state.
func (m *diskState) report(ctx context.Context, o Options) (*Report, error) {
	r := m.records(o.Out)
	if m.out == nil {
		return r, nil
	}
	differ, err := m.manifest.Drifted(o.Out)
	if err != nil {
		return nil, err
	}
	if m.intent == nil {
		r.Drifted = append(r.Drifted, differ...)
	}
	subs, missing, err := m.subscriptions(differ)
	if err != nil {
		return nil, err
	}
	r.Missing = append(r.Missing, missing...)
	if o.dates != nil {
		s, err := m.out.Snapshot()
		if err != nil {
			return nil, err
		}
		r.dates = o.dates(ctx, s)
	}
	if len(o.Admins) == 0 {
		return r, nil
	}
	r.Envoys, err = m.envoys(ctx, o.Admins, subs, r.Drifted)
	return r, err
}

// records returns a Report with the parts that the records hold.
func (m *diskState) records(out string) *Report {
	r := &Report{
		Out: out, State: m.state, Paused: m.decided.Paused, Pinned: m.decided.Pinned, Trial: m.decided.Trial, Guarded: m.guarded, Approved: m.approved,
		Drifted: []string{}, Missing: []string{}, Envoys: []EnvoyReport{},
		Retired: []publish.Retired{}, Held: []publish.Refusal{}, LastRefusal: withFindings(m.refused.Last),
	}
	if m.manifest.Snapshot != "" {
		r.Published = &Publication{
			Snapshot: m.manifest.Snapshot, Time: m.manifest.Published, Revision: m.manifest.Revision,
			Format: m.manifest.Format, EnvoyPath: m.manifest.EnvoyPath, Resources: m.manifest.Resources, Part: m.manifest.Part,
		}
		if r.Published.Resources == nil {
			r.Published.Resources = map[string]int{}
		}
	}
	if i := m.served; i != nil {
		r.Published = &Publication{Snapshot: i.Snapshot, Time: i.Time, Revision: i.Revision, Resources: maps.Clone(i.Resources)}
	}
	if in := m.intent; in != nil {
		r.Change = &Change{From: in.From, To: in.To, Direction: in.Direction, Started: in.Started, Attempt: in.Attempt, Refusal: withFindings(in.Refusal)}
	}
	r.Incomplete = m.manifest.Files.Incomplete()
	r.Retired = append(r.Retired, m.manifest.Retired...)
	for i := range m.refused.Held {
		r.Held = append(r.Held, *withFindings(&m.refused.Held[i]))
	}
	return r
}

// withFindings returns a copy of r whose nil Findings are empty, because nil would be null in JSON.
func withFindings(r *publish.Refusal) *publish.Refusal {
	if r == nil {
		return nil
	}
	with := *r
	with.Findings = append(diag.List{}, r.Findings...)
	return &with
}

// downgradeMoved changes REJECTED to STALE for files that moved meanwhile: the Envoy may have refused the
// file before.
func (r *Report) downgradeMoved(moved map[string]bool) {
	r.Missing = slices.DeleteFunc(r.Missing, func(name string) bool { return moved[name] })
	for _, e := range r.Envoys {
		for i := range e.Subscriptions {
			if row := &e.Subscriptions[i]; row.Sync == Rejected && moved[row.File] {
				row.Sync, row.Reasons = Stale, []string{}
			}
		}
	}
}
