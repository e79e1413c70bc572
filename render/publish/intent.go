package publish

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path/filepath"
	"slices"
	"time"
)

const (
	intentPath = private + "/intent"
	undoPath   = private + "/undo"

	// publishAgain is the remedy for an intent that can't be completed.
	publishAgain = "and publish again: the change then starts from the files that are published"
)

// Direction is the direction of a change.
type Direction string

const (
	// Forward leads to the snapshot of the plan.
	Forward Direction = "forward"
	// Back leads to the snapshot before, since Envoy refused that of the plan.
	Back Direction = "back"
)

// Intent is the record of the current change, in .xdspub/intent, for the next writer in case this one is
// killed. Intent does not hold the published steps, because the files show them.
type Intent struct {
	Layout    int       `json:"layout"`
	From      string    `json:"from"` // ids of snapshots
	To        string    `json:"to"`
	Direction Direction `json:"direction"`
	Started   time.Time `json:"begun"`
	// Attempt counts the killed writers of the change, and this one.
	Attempt int `json:"attempt"`
	// Manifest is the record of From.
	Manifest Manifest `json:"manifest"`
	// Record is the hash of the manifest after the change. If this manifest is on disk, only the intent is
	// left to remove.
	Record string `json:"record"`
	// Steps are the files that the change moves, with the places of their saved bytes; empty if nobody can
	// refuse the change.
	Steps []intentStep `json:"steps,omitempty"`
	// Rollback is the file that a rollback gives other bytes than before; nil for none. Once the rollback has
	// begun, Steps holds these bytes.
	Rollback *intentRollback `json:"way_back,omitempty"`
	// Refusal is the reason of a rollback.
	Refusal *Refusal `json:"refusal,omitempty"`
}

type intentStep struct {
	Name  string  `json:"name"`
	Files []saved `json:"files"`
}

// saved is a file before a step.
type saved struct {
	Path string `json:"path"`
	// Saved is the name in .xdspub/undo; empty if the file did not exist.
	Saved string `json:"saved,omitempty"`
	// Sum is a hash of the file's bytes before the step, even if nothing is saved; empty without a regular
	// file.
	Sum     string `json:"sum,omitempty"`
	Version string `json:"version,omitempty"`
	Secret  bool   `json:"secret,omitempty"`
	// Edited means that somebody had edited the file by hand: nothing is saved, and a rollback leaves the
	// file.
	Edited bool `json:"edited,omitempty"`
}

// ReadOriginal returns a file's bytes from before the change that ended early in the directory out; nil
// without such a change, or if the change does not move the file. past reports whether the change has moved a
// file after the step that writes this one.
func ReadOriginal(out, file string) (data []byte, past bool, err error) {
	_, err = reading(out, func(root folder) (struct{}, error) {
		in, err := readIntent(root)
		if err != nil || in == nil || in.Direction == Back {
			return struct{}{}, err
		}
		m, err := readManifest(root)
		if err != nil {
			return struct{}{}, err
		}
		if done, err := in.done(m); done || err != nil {
			return struct{}{}, err
		}
		data, past, err = in.original(root, file)
		return struct{}{}, err
	})
	return data, past, err
}

func (in *Intent) original(root folder, file string) (data []byte, past bool, err error) {
	was := make(map[string]saved)
	for _, f := range in.originals() {
		was[f.Path] = f
	}
	if was[file].Saved == "" {
		return nil, false, nil
	}
	if data, err = readSaved(root, was[file]); err != nil {
		return nil, false, err
	}
	behind := false
	for _, s := range in.Steps {
		for _, f := range s.Files {
			if behind && !past {
				if past, err = movedSince(root, was[f.Path]); err != nil {
					return nil, false, err
				}
			}
		}
		behind = behind || slices.ContainsFunc(s.Files, func(f saved) bool { return f.Path == file })
	}
	return data, past, nil
}

// intentRollback is a Rollback with saved bytes.
type intentRollback struct {
	Taken   intentRestored `json:"taken"`
	Refused intentRestored `json:"refused"`
}

type intentRestored struct {
	File    saved     `json:"file"`
	Retired []Retired `json:"going,omitempty"`
}

// ReadIntent returns the record of the current change in the directory out, or nil. ReadIntent takes no lock.
func ReadIntent(out string) (*Intent, error) { return reading(out, readIntent) }

func readIntent(root folder) (in *Intent, err error) {
	err = completed(root, nil, func() (*PublishedFiles, error) {
		in = new(Intent)
		there, err := readRecord(root, intentPath, in, func() error { return in.check() }, "remove the file "+publishAgain)
		if !there || err != nil {
			in = nil
			return nil, err
		}
		return &in.Manifest.Files, nil
	})
	if err != nil {
		return nil, err
	}
	return in, nil
}

func (in *Intent) check() error {
	if in.Direction != Forward && in.Direction != Back {
		return fmt.Errorf("invalid direction %q", in.Direction)
	}
	for f := range in.files() {
		if err := checkName(f.Path); err != nil {
			return err
		}
		if f.Saved != "" && (f.Saved != filepath.Base(f.Saved) || !filepath.IsLocal(f.Saved)) {
			return fmt.Errorf("invalid name %q of saved bytes", f.Saved)
		}
	}
	return in.Manifest.check()
}

// files returns all files that a rollback may restore.
func (in *Intent) files() iter.Seq[saved] {
	return func(yield func(saved) bool) {
		for _, s := range in.Steps {
			for _, f := range s.Files {
				if !yield(f) {
					return
				}
			}
		}
		if in.Rollback == nil {
			return
		}
		for _, r := range []intentRestored{in.Rollback.Taken, in.Rollback.Refused} {
			if r.File.Saved != "" && !yield(r.File) {
				return
			}
		}
	}
}

// done reports whether m, the manifest on disk, is the change's last file.
func (in *Intent) done(m Manifest) (bool, error) {
	f, err := m.file()
	return err == nil && in.Record == sum(f.Data), err
}

// originals returns the files that the change moves, each in the state before the first step that moves it.
func (in *Intent) originals() []saved {
	if in == nil {
		return nil
	}
	var list []saved
	seen := make(map[string]bool)
	for _, s := range in.Steps {
		for _, f := range s.Files {
			if !seen[f.Path] {
				list = append(list, f)
			}
			seen[f.Path] = true
		}
	}
	return list
}

// paths returns the set of the files that the change moves.
func (in *Intent) paths() map[string]bool {
	set := make(map[string]bool)
	for _, f := range in.originals() {
		set[f.Path] = true
	}
	return set
}

// needs returns the set of the files in .xdspub/undo that a rollback needs.
func (in *Intent) needs() map[string]bool {
	set := make(map[string]bool)
	if in != nil {
		for f := range in.files() {
			set[f.Saved] = true
		}
	}
	return set
}

// reversible reports whether a whole snapshot was published before the change. Without one, Envoy keeps the
// accepted files of a first publish: half of them are better than none, and Envoy's next start must find the
// files of its bootstrap.
func (in *Intent) reversible() bool { return in.From != "" }

// intend returns the intent of p, and the bytes to save for a rollback. After an interrupted change, the
// rollback leads to the snapshot before that change.
func (d *Dir) intend(p Plan, prev Manifest, interrupted *Intent) (Intent, []staged, error) {
	in := Intent{
		Layout: prev.Files.layout(), From: prev.Snapshot, To: p.Manifest.Snapshot, Direction: Forward,
		Started: time.Now().UTC().Truncate(time.Second), Attempt: 1, Manifest: prev,
	}
	if interrupted != nil {
		in.Layout, in.From, in.Manifest, in.Attempt = interrupted.Layout, interrupted.From, interrupted.Manifest, interrupted.Attempt+1
	}
	if p.Confirm == nil {
		return in, nil, nil
	}
	var files []staged
	keep := func(f File) saved {
		// Beside the files of the interrupted change, which this change may need.
		name := fmt.Sprintf("%d-%04d", in.Attempt, len(files)+1)
		files = append(files, staged{f, undoPath + "/" + name})
		return saved{Path: f.Path, Saved: name, Sum: sum(f.Data), Version: f.Version, Secret: f.Secret}
	}
	was := make(map[string]saved) // before the first step that moves it
	for _, f := range interrupted.originals() {
		was[f.Path] = f
	}
	written := make(map[string]File) // by an earlier step of this plan
	for _, s := range p.Steps {
		step := intentStep{Name: s.Name}
		names := slices.Clone(s.Remove)
		for _, f := range s.Write {
			names = append(names, f.Path)
		}
		for _, name := range names {
			if f, twice := written[name]; twice {
				// If nothing was saved, the rollback leaves or removes the file, and never writes the
				// bytes of the earlier step.
				if was[name].Saved != "" {
					step.Files = append(step.Files, keep(f))
				}
				continue
			}
			if _, known := was[name]; !known {
				var err error
				if was[name], err = d.saveCurrent(name, prev, keep); err != nil {
					return in, nil, err
				}
			}
			step.Files = append(step.Files, was[name])
		}
		for _, f := range s.Write {
			written[f.Path] = f
		}
		in.Steps = append(in.Steps, step)
	}
	in.adoptInterrupted(interrupted)
	if p.Rollback != nil {
		save := func(k RestoredFile) intentRestored {
			if k.File.Data == nil {
				return intentRestored{}
			}
			return intentRestored{keep(k.File), k.Retired}
		}
		in.Rollback = &intentRollback{save(p.Rollback.Taken), save(p.Rollback.Refused)}
	}
	return in, files, nil
}

// adoptInterrupted adds the files that only the interrupted change moves. A rollback removes last the files
// that the interrupted change added, because nothing names them by then. It restores first the files that the
// interrupted change replaced or removed, because other files name them.
func (in *Intent) adoptInterrupted(interrupted *Intent) {
	come, rest := intentStep{Name: "of the interrupted change"}, intentStep{Name: "of the interrupted change"}
	own := in.paths()
	for _, f := range slices.Backward(interrupted.originals()) {
		switch {
		case own[f.Path]:
		case f.Saved == "":
			come.Files = append(come.Files, f)
		default:
			rest.Files = append(rest.Files, f)
		}
	}
	if len(come.Files) > 0 {
		in.Steps = slices.Insert(in.Steps, 0, come)
	}
	if len(rest.Files) > 0 {
		in.Steps = append(in.Steps, rest)
	}
}

// saveCurrent returns the published file name, and has its bytes saved for a rollback.
func (d *Dir) saveCurrent(name string, m Manifest, keep func(File) saved) (saved, error) {
	f, err := d.current(name, m)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return saved{Path: name}, nil
	case errors.Is(err, errEdited) && f.Data == nil:
		return saved{Path: name, Edited: true}, nil
	case errors.Is(err, errEdited):
		return saved{Path: name, Sum: sum(f.Data), Edited: true}, nil
	case err != nil:
		return saved{}, err
	}
	return keep(f), nil
}

var errEdited = errors.New("changed since it was published")

// current returns the published file name. The error is errEdited if somebody has edited the file by hand or
// removed it.
func (d *Dir) current(name string, m Manifest) (File, error) {
	if is, out := d.reader.trusted(name); out {
		return is, nil
	}
	was, known := m.Files.Get(name)
	f := File{Path: name, Version: was.Version}
	data, info, err := d.root.read(name, MaxFile)
	f.Data = data
	switch {
	case isOther(err), known && errors.Is(err, fs.ErrNotExist):
		return f, errEdited
	case err != nil:
		return f, err
	case known && was.Sum != sum(f.Data):
		return f, errEdited
	}
	f.Secret = info.Mode.Perm()&0o004 == 0 // somebody may have given it fewer rights yet
	return f, nil
}
