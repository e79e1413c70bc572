package doctor

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"xdspub/diag"
	"xdspub/doctor/machine"
	"xdspub/envoy"
	"xdspub/render/publish"
	"xdspub/watch/control"
)

// Setting is a setting of xdspub as text.
type Setting struct{ Name, Value string }

// Bundle collects what a bug report needs.
type Bundle struct {
	Version  string // of the program
	Settings []Setting

	files []bundled
}

// bundled is a file of a bundle.
type bundled struct {
	name string
	data []byte
}

const (
	// mostListed bounds the files of an output directory that a bundle lists.
	mostListed = 200_000
	// bundleReadme tells the reader what the bundle has.
	bundleReadme = `Made by xdspub doctor --bundle, for a bug report.

It has the settings, the findings, the states of the watch and of each Envoy, the record of what is
published, names, modes, sizes and times of files, and the last events of a running watch. It has no
content of resources, no words of Envoy about resources, and no values that look like a secret. Names
of resources, files and hosts are in it: read it before you send it.
`
)

// Add adds the result of an examination below a folder; empty for none.
func (b *Bundle) Add(ctx context.Context, folder string, r *Report) {
	e := r.examined
	b.json(filepath.Join(folder, "findings.json"), r)
	b.json(filepath.Join(folder, "machine.json"), e.machineFacts())
	b.json(filepath.Join(folder, "envoys.json"), e.envoyFacts())
	if e.status != nil {
		b.json(filepath.Join(folder, "status.json"), withoutWords(e.status))
	}
	if e.state != nil {
		b.json(filepath.Join(folder, "manifest.json"), manifestFacts(e.state.Manifest))
	}
	b.add(filepath.Join(folder, "files.txt"), listFiles(e.out))
	if e.status != nil && e.status.Watch != nil {
		lines, err := control.Events(ctx, e.Status.Out)
		if err != nil {
			lines = []json.RawMessage{[]byte(fmt.Sprintf("%q", diag.ClipLine(err.Error(), diag.MaxText)))}
		}
		for i, line := range lines {
			var is any
			if json.Unmarshal(line, &is) == nil {
				lines[i], _ = json.Marshal(withoutWords(is))
			}
		}
		b.json(filepath.Join(folder, "events.json"), lines)
	}
}

// WriteTo writes the bundle as a compressed archive.
func (b *Bundle) WriteTo(w io.Writer) (int64, error) {
	var settings strings.Builder
	for _, s := range b.Settings {
		fmt.Fprintf(&settings, "%s: %s\n", s.Name, diag.Printable(diag.Hide(s.Value)))
	}
	first := []bundled{{"README.txt", []byte(bundleReadme)}, {"version.txt", []byte(b.Version + "\n")}, {"settings.txt", []byte(settings.String())}}
	counted := &counter{w: w}
	compressed := gzip.NewWriter(counted)
	archive := tar.NewWriter(compressed)
	for _, f := range append(first, b.files...) {
		err := archive.WriteHeader(&tar.Header{Name: "xdspub-bundle/" + filepath.ToSlash(f.name), Mode: 0o600, Size: int64(len(f.data)), ModTime: time.Now()})
		if err == nil {
			_, err = archive.Write(f.data)
		}
		if err != nil {
			return counted.n, err
		}
	}
	return counted.n, errors.Join(archive.Close(), compressed.Close())
}

// counter counts the bytes that it writes.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

func (b *Bundle) add(name string, data []byte) { b.files = append(b.files, bundled{name, data}) }

func (b *Bundle) json(name string, v any) {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		text.WriteString(err.Error())
	}
	b.add(name, text.Bytes())
}

// shown are the keys whose texts a bundle has. They hold names, codes, versions, times and words of xdspub. Other
// texts, such as messages of findings and of Envoys, may quote the content of resources.
var shown = setOf(`sync drifted missing address api author by client cluster code delivery direction envoy envoys event file format envoy_path
	from kind last_refusal level mode name names names_added names_changed names_removed node notices op out outcome path place
	program protocol reason resource revision root runs running_version expected_version selects setting severity snapshot
	source stack stage state stats step target time begun began ended since published until to type url variants version
	watch_state certificate_expires next_trim snapshot_since`)

func setOf(words string) map[string]bool {
	set := make(map[string]bool)
	for _, word := range strings.Fields(words) {
		set[word] = true
	}
	return set
}

// withoutWords returns a value as decoded JSON, with … in place of each text whose key is not in shown.
func withoutWords(v any) any {
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	var decoded any
	if err := json.Unmarshal(data, &decoded); err != nil {
		return err.Error()
	}
	return hideTexts("", decoded)
}

func hideTexts(key string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, below := range v {
			v[name] = hideTexts(name, below)
		}
		return v
	case []any:
		for i, below := range v {
			v[i] = hideTexts(key, below)
		}
		return v
	case string:
		if v != "" && !shown[key] {
			return "…"
		}
		return diag.Hide(diag.Clip(v, diag.MaxText))
	}
	return v
}

// manifestFacts returns the record without the hashes of the files, by which somebody could try out secrets.
func manifestFacts(m publish.Manifest) any {
	versions := make(map[string]string)
	for _, name := range m.Files.Names() {
		f, _ := m.Files.Get(name)
		versions[name] = f.Version
	}
	facts := map[string]any{"versions": versions, "draining": len(m.DrainingWatches)}
	m.Files, m.DrainingWatches = publish.PublishedFiles{}, nil
	facts["record"] = m
	return facts
}

// machineFacts returns what is known of the machine and of the processes.
func (e *examination) machineFacts() any {
	type process struct {
		PID, UID                         int
		Name                             string
		Started                          time.Time
		Hidden                           bool
		Descriptors, MostDescriptors     int
		InotifyInstances, InotifyWatches int
	}
	list := []process{}
	for _, p := range e.runs {
		list = append(list, process{p.PID, p.User.ID, p.Name, p.Started, p.Hidden, p.Descriptors, p.MostDescriptors, p.Instances, p.Watches})
	}
	volumes := make(map[string]any)
	for _, path := range []string{e.out, e.Source} {
		if v, err := machine.VolumeOf(path); path != "" && err == nil {
			volumes[path] = v
		}
	}
	return map[string]any{
		"system": runtime.GOOS, "architecture": runtime.GOARCH, "kernel": machine.System.Kernel(), "user": os.Geteuid(), "time": e.now.UTC(),
		"limits":         []machine.Limit{machine.System.Instances(), machine.System.Watches()},
		"file_systems":   volumes,
		"envoys":         list,
		"need_instances": e.instances,
	}
}

// envoyFacts returns what the Envoys say about themselves.
func (e *examination) envoyFacts() any {
	type facts struct {
		URL   string
		About *envoy.About
		Error string
	}
	list := []facts{}
	for _, s := range e.envoys {
		f := facts{URL: s.admin.String(), About: s.about}
		if err := s.wrong(); err != nil {
			f.Error = fmt.Sprintf("%T", err)
		}
		list = append(list, f)
	}
	return list
}

// listFiles lists the files of an output directory with their modes, owners, sizes and times.
func listFiles(out string) []byte {
	var b bytes.Buffer
	n := 0
	_ = filepath.WalkDir(out, func(path string, d fs.DirEntry, err error) error {
		if n++; n > mostListed {
			fmt.Fprintf(&b, "… and more than %d others\n", mostListed)
			return fs.SkipAll
		}
		below, _ := filepath.Rel(out, path)
		if err != nil {
			fmt.Fprintf(&b, "%s: can't be read\n", diag.Printable(below))
			return nil
		}
		if info, err := d.Info(); err == nil {
			fmt.Fprintf(&b, "%s %s %d %s %s\n", info.Mode(), owners(info), info.Size(), info.ModTime().UTC().Format(time.RFC3339Nano), diag.Printable(below))
		}
		return nil
	})
	return b.Bytes()
}
