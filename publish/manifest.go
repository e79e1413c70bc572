package publish

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"reflect"
	"slices"
	"time"
)

const (
	manifestPath = private + "/manifest.json"
	// layout is the version of the files on disk, .xdspub included. Another
	// number means that an older program must keep its hands off.
	layout = 1
)

// Manifest is the record of an output directory, in .xdspub/manifest.json: what
// the next run has to know and the published files do not tell.
type Manifest struct {
	// Layout is the version of the directory's layout. Publish sets it; 0 means
	// that there is no record, since nothing was published yet.
	Layout int `json:"layout"`
	// Format and EnvoyPath can't change under a running Envoy.
	Format    string `json:"format"`
	EnvoyPath string `json:"envoy_path"`
	EDSMode   string `json:"eds_mode"`
	// InlineRoutesBudget is the inotify budget that route configurations went into
	// their listeners for; 0 while they are in files.
	InlineRoutesBudget int `json:"inline_routes_budget,omitzero"`
	// Snapshot is the id of the snapshot that is out, all steps of it, and
	// Published when that was.
	Snapshot  string    `json:"snapshot"`
	Published time.Time `json:"published,omitzero"`
	// Revision is the git commit of the source tree, empty where there is none.
	Revision string `json:"revision,omitempty"`
	// Resources counts the resources of the snapshot by type, as in "CDS".
	Resources map[string]int `json:"resources,omitempty"`
	Going     []Going        `json:"going"`
	Draining  []Drain        `json:"draining,omitempty"`
	// Files are the published files by path. Publish sets it.
	Files map[string]Published `json:"files,omitempty"`
}

// Published is what a file held when it was published.
type Published struct {
	Version string `json:"version"` // its version_info
	Sum     string `json:"sum"`     // a hash of its bytes
}

// Drain is a path subscription that no listener has any more: Envoy holds it until
// the listener or filter chain that had it has drained.
type Drain struct {
	Watch string    `json:"watch"`
	Since time.Time `json:"since"`
}

// Going is what is still out, is not in the snapshot any more, and waits for
// its trim: exactly one of a cluster, by name, and a file, by path.
type Going struct {
	Cluster string `json:"cluster,omitempty"`
	File    string `json:"file,omitempty"`
	// Since is when nothing named it any more. It is zero until a trim has seen that
	// the change which dropped it is through: before that, something may.
	Since time.Time `json:"since,omitzero"`
}

// Since is when each of what goes began to. Its keys have no time.
func (m Manifest) Since() map[Going]time.Time {
	since := make(map[Going]time.Time, len(m.Going))
	for _, g := range m.Going {
		since[Going{Cluster: g.Cluster, File: g.File}] = g.Since
	}
	return since
}

// shifted is m with the times of what goes and drains moved. What has none yet has none.
func (m Manifest) shifted(by time.Duration) Manifest {
	m.Going, m.Draining = slices.Clone(m.Going), slices.Clone(m.Draining)
	for i, g := range m.Going {
		if !g.Since.IsZero() {
			m.Going[i].Since = g.Since.Add(by)
		}
	}
	for i, d := range m.Draining {
		m.Draining[i].Since = d.Since.Add(by)
	}
	return m
}

// ReadManifest reads the record of the directory out. It takes no lock and
// changes nothing. Without a record, or without the directory, it returns the
// zero Manifest.
func ReadManifest(out string) (Manifest, error) { return reading(out, readManifest) }

func readManifest(root folder) (Manifest, error) {
	var m Manifest
	there, err := readRecord(root, manifestPath, &m, func() error { return m.check() },
		"remove the file and publish again with the format and the Envoy path of before; clusters and files that waited for their trim are then forgotten")
	if err != nil || !there {
		return Manifest{}, err
	}
	return m, nil
}

func (m Manifest) check() error {
	for _, g := range m.Going {
		if (g.Cluster == "") == (g.File == "") {
			return fmt.Errorf("manifest: going %+v: not exactly one of cluster and file", g)
		}
		if g.File != "" {
			if err := checkName(g.File); err != nil {
				return fmt.Errorf("manifest: going: %w", err)
			}
		}
	}
	for name := range m.Files {
		if err := checkName(name); err != nil {
			return fmt.Errorf("manifest: %w", err)
		}
	}
	return nil
}

// during is the record while the plan that leads to m is under way. The
// snapshot is still the former one. What was going counts as going until the
// plan is done: a trim that is killed half-way would otherwise leave clusters
// and files that nothing knows of. What does not go before or after the plan has no
// time: it may be in use, and where the plan ends early, it begins to go anew.
func (m Manifest) during(prev Manifest) Manifest {
	m.Snapshot, m.Published, m.Revision, m.Resources, m.Files = prev.Snapshot, prev.Published, prev.Revision, prev.Resources, prev.Files
	before := slices.Clone(prev.Going)
	for i := range before {
		before[i].Since = time.Time{}
	}
	return m.with(before).anew(prev)
}

// with is m where more goes, which has no time yet.
func (m Manifest) with(more []Going) Manifest {
	goes := m.Since()
	m.Going = slices.Clone(m.Going)
	for _, g := range more {
		if _, on := goes[g]; !on {
			m.Going = append(m.Going, g)
		}
	}
	return m
}

// anew is m where another record has no time for some that go: these may have been in
// use since then.
func (m Manifest) anew(other Manifest) Manifest {
	since := other.Since()
	m.Going = slices.Clone(m.Going)
	for i, g := range m.Going {
		if since[Going{Cluster: g.Cluster, File: g.File}].IsZero() {
			m.Going[i].Since = time.Time{}
		}
	}
	return m
}

// same tells whether prev, which is on disk, says what m says, the time of
// publishing and the commit apart: a plan that changes nothing leaves the record
// alone.
func (m Manifest) same(prev Manifest) bool {
	m.Published, m.Revision = prev.Published, prev.Revision
	return prev.Layout == layout && reflect.DeepEqual(m.normal(), prev.normal())
}

// normal is m in the form in which it is written and can be compared.
func (m Manifest) normal() Manifest {
	m.Layout = layout
	m.Published = m.Published.UTC().Round(0)
	going := make([]Going, len(m.Going)) // never null in JSON
	for i, g := range m.Going {
		g.Since = g.Since.UTC().Round(0)
		going[i] = g
	}
	m.Going = going
	var draining []Drain
	for _, d := range m.Draining {
		draining = append(draining, Drain{d.Watch, d.Since.UTC().Round(0)})
	}
	m.Draining = draining
	if len(m.Resources) == 0 {
		m.Resources = nil
	}
	if len(m.Files) == 0 {
		m.Files = nil
	}
	return m
}

// file is m as it stands on disk.
func (m Manifest) file() (File, error) { return recordFile(manifestPath, m.normal()) }

// after is what the record of files says when the steps of p are out.
func (p Plan) after(files map[string]Published) map[string]Published {
	out := maps.Clone(files)
	if out == nil {
		out = make(map[string]Published)
	}
	for _, s := range p.Steps {
		for _, f := range s.Write {
			out[f.Path] = Published{f.Version, sum(f.Data)}
		}
		for _, name := range s.Remove {
			delete(out, name)
		}
	}
	return out
}

// sum is short: it tells a file that was edited by hand, and no forger.
func sum(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:16])
}

// Drifted lists the published files in the directory out that are not as they were
// published, sorted: edited by hand, replaced or gone. While a change is under way
// they include those that it has moved.
func (m Manifest) Drifted(out string) ([]string, error) { return reading(out, m.drifted) }

func (m Manifest) drifted(root folder) ([]string, error) {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(m.Files)) {
		data, _, err := root.read(name, MaxFile)
		switch {
		case isOther(err), errors.Is(err, fs.ErrNotExist), err == nil && sum(data) != m.Files[name].Sum:
			list = append(list, name)
		case err != nil:
			return nil, err
		}
	}
	return list, nil
}
