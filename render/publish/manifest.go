package publish

import (
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"time"

	"xdspub/source/owners"
)

const (
	manifestPath = private + "/manifest.json"
	// layout is the latest version of the files on disk, .xdspub included. A program that
	// knows only older ones must not touch them. Version 2 has bases (PublishedFiles); a
	// record without one keeps version 1.
	layout = 2
)

// Layout is the latest layout of an output directory that this program knows (Manifest.Layout).
const Layout = layout

// Manifest is the record of an output directory, in .xdspub/manifest.json. It holds the facts that the next run
// needs and can't read from the published files.
type Manifest struct {
	// Layout is the version of the directory's layout, set by Publish; 0 before the first Publish.
	Layout int `json:"layout"`
	// Format and EnvoyPath can't change under a running Envoy.
	Format    string `json:"format"`
	EnvoyPath string `json:"envoy_path"`
	EDSMode   string `json:"eds_mode"`
	// InlineRoutesBudget is the inotify budget that route configurations went into
	// their listeners for; 0 while they are in files.
	InlineRoutesBudget int `json:"inline_routes_budget,omitzero"`
	// Snapshot is the id of the last snapshot that was published with all its steps, Published the time.
	Snapshot  string    `json:"snapshot"`
	Published time.Time `json:"published,omitzero"`
	// Revision is the git commit of the source tree, or empty.
	Revision string `json:"revision,omitempty"`
	// Part means that the snapshot is a part of a refused source tree; nil for a whole source tree. During a change,
	// Part is that of the snapshot which the change leads to.
	Part *Part `json:"part,omitempty"`
	// Resources counts the resources of the snapshot by type, as in "CDS".
	Resources map[string]int `json:"resources,omitempty"`
	// RestrictedSecrets means that the files may have a secret that only some clients of a server may be sent.
	// The files do not say which clients.
	RestrictedSecrets bool `json:"restricted_secrets,omitempty"`
	// Owners is the name of the record of the resources' owners (package watch); empty if they are unknown.
	Owners          string          `json:"owners,omitempty"`
	Retired         []Retired       `json:"going"`
	DrainingWatches []DrainingWatch `json:"draining,omitempty"`
	// Files are the published files. Publish sets it.
	Files PublishedFiles `json:"files,omitzero"`
}

// Part describes a snapshot that is a part of a refused source tree.
type Part struct {
	// Since is since when the source tree is refused.
	Since time.Time `json:"since"`
	// Held are owners whose folders keep their last valid resources. The source tree has all other resources.
	// Without Held, the part has only changes of resources that were published before.
	Held []owners.Held `json:"held,omitempty"`
}

// Holds reports whether an owner is in Held.
func (p *Part) Holds(owner string) bool {
	return slices.ContainsFunc(p.Held, func(h owners.Held) bool { return h.Owner == owner })
}

// String returns since when the source tree is refused, and the held owners.
func (p *Part) String() string {
	text := "a part of a source tree whose rest waits since " + p.Since.UTC().Format(time.RFC3339)
	if len(p.Held) > 0 {
		text += "; " + owners.Text(p.Held)
	}
	return text
}

// DrainingWatch is a path subscription that only draining listeners or filter chains have:
// Envoy keeps it until they have drained.
type DrainingWatch struct {
	Watch string    `json:"watch"`
	Since time.Time `json:"since"`
}

// Retired is a cluster (by name) or a file (by path) that is still published, is no longer
// in the snapshot, and waits for its trim. Exactly one of the two is set.
type Retired struct {
	Cluster string `json:"cluster,omitempty"`
	File    string `json:"file,omitempty"`
	// Since is when the last reference was removed; zero until a trim has seen that the change that retired
	// the cluster or file is complete.
	Since time.Time `json:"since,omitzero"`
}

// RetiredAt returns when each Retired was retired. Its keys have no time.
func (m Manifest) RetiredAt() map[Retired]time.Time {
	since := make(map[Retired]time.Time, len(m.Retired))
	for _, g := range m.Retired {
		since[Retired{Cluster: g.Cluster, File: g.File}] = g.Since
	}
	return since
}

// shifted returns m with the times of Retired and DrainingWatches moved. A zero time stays.
func (m Manifest) shifted(by time.Duration) Manifest {
	m.Retired, m.DrainingWatches = slices.Clone(m.Retired), slices.Clone(m.DrainingWatches)
	for i, g := range m.Retired {
		if !g.Since.IsZero() {
			m.Retired[i].Since = g.Since.Add(by)
		}
	}
	for i, d := range m.DrainingWatches {
		m.DrainingWatches[i].Since = d.Since.Add(by)
	}
	return m
}

// ReadManifest reads the record of the directory out. It takes no lock and
// changes nothing. Without a record, or without the directory, it returns the
// zero Manifest.
func ReadManifest(out string) (Manifest, error) { return reading(out, readManifest) }

func readManifest(root folder) (Manifest, error) { return readManifestKnowing(root, nil) }

// readManifestKnowing is readManifest where a base need not be read again.
func readManifestKnowing(root folder, known *base) (m Manifest, err error) {
	const wayOut = "remove the file, and publish again with the same --format and --envoy-path; what waited for its removal then " +
		"waits the whole --trim-delay again"
	err = completed(root, known, func() (*PublishedFiles, error) {
		m = Manifest{}
		_, err := readRecord(root, manifestPath, &m, func() error { return m.check() }, wayOut)
		return &m.Files, err
	})
	if err != nil {
		return Manifest{}, err
	}
	return m, nil
}

func (m Manifest) check() error {
	for _, g := range m.Retired {
		if (g.Cluster == "") == (g.File == "") {
			return fmt.Errorf("manifest: retired %+v: one of cluster and file is needed, not both", g)
		}
		if g.File != "" {
			if err := checkName(g.File); err != nil {
				return fmt.Errorf("manifest: retired: %w", err)
			}
		}
	}
	if strings.Trim(m.Owners, "0123456789abcdef") != "" {
		return fmt.Errorf("manifest: invalid name %q of a record of owners", m.Owners)
	}
	if err := m.Files.check(); err != nil {
		return fmt.Errorf("manifest: %w", err)
	}
	return nil
}

// during returns the record for the time of the plan that leads to m. It names the snapshot
// before. It keeps what was retired before: otherwise a trim that is killed half-way would
// leave clusters and files without a record. What is not retired both before and after the
// plan has no time: it may be in use, and where the plan ends early, its trim delay starts
// again.
func (m Manifest) during(prev Manifest) Manifest {
	m.Snapshot, m.Published, m.Revision, m.Resources, m.Files = prev.Snapshot, prev.Published, prev.Revision, prev.Resources, prev.Files
	m.Owners = prev.Owners
	m.RestrictedSecrets = m.RestrictedSecrets || prev.RestrictedSecrets
	before := slices.Clone(prev.Retired)
	for i := range before {
		before[i].Since = time.Time{}
	}
	return m.retiring(before).restartTrimDelays(prev)
}

// retiring returns m with more retired entries, without a time.
func (m Manifest) retiring(more []Retired) Manifest {
	goes := m.RetiredAt()
	m.Retired = slices.Clone(m.Retired)
	for _, g := range more {
		if _, on := goes[g]; !on {
			m.Retired = append(m.Retired, g)
		}
	}
	return m
}

// restartTrimDelays returns m without the times that another record lacks, because the retired entries may
// have been in use since.
func (m Manifest) restartTrimDelays(other Manifest) Manifest {
	since := other.RetiredAt()
	m.Retired = slices.Clone(m.Retired)
	for i, g := range m.Retired {
		if since[Retired{Cluster: g.Cluster, File: g.File}].IsZero() {
			m.Retired[i].Since = time.Time{}
		}
	}
	return m
}

// same reports whether prev, which is on disk, equals m but for the time of publishing and
// the commit: a plan that changes nothing keeps the record.
func (m Manifest) same(prev Manifest) bool {
	if prev.Layout == 0 || !m.Files.Equal(prev.Files) {
		return false
	}
	m.Published, m.Revision, m.Files = prev.Published, prev.Revision, prev.Files
	return reflect.DeepEqual(m.normal(), prev.normal())
}

// normal returns m in the form in which it is written and compared.
func (m Manifest) normal() Manifest {
	m.Layout = m.Files.layout()
	m.Published = m.Published.UTC().Round(0)
	going := make([]Retired, len(m.Retired)) // never null in JSON
	for i, g := range m.Retired {
		g.Since = g.Since.UTC().Round(0)
		going[i] = g
	}
	m.Retired = going
	var draining []DrainingWatch
	for _, d := range m.DrainingWatches {
		draining = append(draining, DrainingWatch{d.Watch, d.Since.UTC().Round(0)})
	}
	m.DrainingWatches = draining
	if m.Part != nil {
		part := *m.Part
		part.Since, part.Held = part.Since.UTC().Round(0), slices.Clone(part.Held)
		for i := range part.Held {
			part.Held[i].Since = part.Held[i].Since.UTC().Round(0)
		}
		m.Part = &part
	}
	if len(m.Resources) == 0 {
		m.Resources = nil
	}
	return m
}

// file returns m as a file.
func (m Manifest) file() (File, error) { return recordFile(manifestPath, m.normal()) }

// after returns the published files once the steps of p are published (Plan.change).
func (p Plan) after(files PublishedFiles, known *Reader) PublishedFiles {
	return files.with(p.change(known))
}

// change returns the changes of the published files by the steps of p; nil for a removed file. If known has
// found a file published, change takes the hash of the file from known.
func (p Plan) change(known *Reader) map[string]*Published {
	change := make(map[string]*Published)
	for _, s := range p.Steps {
		for _, f := range s.Write {
			change[f.Path] = &Published{f.Version, known.sum(f)}
		}
		for _, name := range s.Remove {
			change[name] = nil
		}
	}
	return change
}

// Drifted lists the published files in the directory out that were edited by hand, replaced or removed,
// sorted. During a change, Drifted includes the files that the change has moved.
func (m Manifest) Drifted(out string) ([]string, error) { return reading(out, m.drifted) }

func (m Manifest) drifted(root folder) ([]string, error) {
	var list []string
	for _, name := range m.Files.Names() {
		drifted, err := m.driftedAt(root, name)
		if err != nil {
			return nil, err
		}
		if drifted {
			list = append(list, name)
		}
	}
	return list, nil
}

// DriftedAt is Drifted for one file. It returns false for a file that is not on record.
func (m Manifest) DriftedAt(out, file string) (bool, error) {
	return reading(out, func(root folder) (bool, error) { return m.driftedAt(root, file) })
}

func (m Manifest) driftedAt(root folder, file string) (bool, error) {
	was, known := m.Files.Get(file)
	if !known {
		return false, nil
	}
	data, _, err := root.read(file, MaxFile)
	if isOther(err) || errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return err == nil && sum(data) != was.Sum, err
}
