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

	// startAnew is the way out of an intent that can't be gone on with.
	startAnew = "and publish again: the change then starts from what is out"
)

// Direction is the way that a change goes.
type Direction string

const (
	// Forward is to the snapshot that was asked for.
	Forward Direction = "forward"
	// Back is to the one before, since Envoy refused it.
	Back Direction = "back"
)

// Intent is the record of a change that is under way, in .xdspub/intent: what the
// next writer needs when this one is killed. Which steps are out is not in it: the
// published files tell.
type Intent struct {
	Layout    int       `json:"layout"`
	From      string    `json:"from"` // ids of snapshots
	To        string    `json:"to"`
	Direction Direction `json:"direction"`
	Begun     time.Time `json:"begun"`
	// Attempt counts the writers that were killed on the way, and this one.
	Attempt int `json:"attempt"`
	// Manifest is the record of From.
	Manifest Manifest `json:"manifest"`
	// Record is the hash of the manifest that stands when the change is done: a
	// writer that is killed there leaves nothing to do but to remove the intent.
	Record string `json:"record"`
	// Steps are the files that the change moves, and where the bytes are that they
	// had before. They are noted only where somebody can refuse the change.
	Steps []intentStep `json:"steps,omitempty"`
	// WayBack is of a file that goes back to other bytes than it had before; nil is none,
	// and once the change goes back, these stand in Steps.
	WayBack *intentWayBack `json:"way_back,omitempty"`
	// Refusal is why it goes back.
	Refusal *Refusal `json:"refusal,omitempty"`
}

type intentStep struct {
	Name  string  `json:"name"`
	Files []saved `json:"files"`
}

// saved is a file before a step.
type saved struct {
	Path string `json:"path"`
	// Saved is its name in .xdspub/undo; empty where there was no file.
	Saved string `json:"saved,omitempty"`
	// Sum is a hash of the bytes that it had, if it was a file.
	Sum     string `json:"sum,omitempty"`
	Version string `json:"version,omitempty"`
	Secret  bool   `json:"secret,omitempty"`
	// Edited says that it was not as it had been published: nothing is saved, and it
	// does not go back.
	Edited bool `json:"edited,omitempty"`
}

// Found reads a file as it was before the change that ended early in the directory out,
// and nil where there is none, or the file is not among those that it moves. past tells
// whether that change has moved anything behind the step that writes the file.
func Found(out, file string) (data []byte, past bool, err error) {
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
		data, past, err = in.found(root, file)
		return struct{}{}, err
	})
	return data, past, err
}

func (in *Intent) found(root folder, file string) (data []byte, past bool, err error) {
	was := make(map[string]saved)
	for _, f := range in.first() {
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

// intentWayBack is a WayBack of which the bytes are saved.
type intentWayBack struct {
	Taken   intentKept `json:"taken"`
	Refused intentKept `json:"refused"`
}

type intentKept struct {
	File  saved   `json:"file"`
	Going []Going `json:"going,omitempty"`
}

// ReadIntent reads the record of the change that is under way in the directory
// out, or nil where there is none. It takes no lock.
func ReadIntent(out string) (*Intent, error) { return reading(out, readIntent) }

func readIntent(root folder) (*Intent, error) {
	var in Intent
	there, err := readRecord(root, intentPath, &in, func() error { return in.check() }, "remove the file "+startAnew)
	if err != nil || !there {
		return nil, err
	}
	return &in, nil
}

func (in *Intent) check() error {
	if in.Direction != Forward && in.Direction != Back {
		return fmt.Errorf("direction %q", in.Direction)
	}
	for f := range in.files() {
		if err := checkName(f.Path); err != nil {
			return err
		}
		if f.Saved != "" && (f.Saved != filepath.Base(f.Saved) || !filepath.IsLocal(f.Saved)) {
			return fmt.Errorf("saved as %q", f.Saved)
		}
	}
	return in.Manifest.check()
}

// files are all that the change may put back.
func (in *Intent) files() iter.Seq[saved] {
	return func(yield func(saved) bool) {
		for _, s := range in.Steps {
			for _, f := range s.Files {
				if !yield(f) {
					return
				}
			}
		}
		if in.WayBack == nil {
			return
		}
		for _, r := range []intentKept{in.WayBack.Taken, in.WayBack.Refused} {
			if r.File.Saved != "" && !yield(r.File) {
				return
			}
		}
	}
}

// done tells whether m, which is on disk, is the last that the change had to write.
func (in *Intent) done(m Manifest) (bool, error) {
	f, err := m.file()
	return err == nil && in.Record == sum(f.Data), err
}

// first are the files that the change moves, each as it was before the first step
// that moves it.
func (in *Intent) first() []saved {
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

// paths is the set of the files that the change moves.
func (in *Intent) paths() map[string]bool {
	set := make(map[string]bool)
	for _, f := range in.first() {
		set[f.Path] = true
	}
	return set
}

// needs is the set of the files in .xdspub/undo that a way back needs.
func (in *Intent) needs() map[string]bool {
	set := make(map[string]bool)
	if in != nil {
		for f := range in.files() {
			set[f.Saved] = true
		}
	}
	return set
}

// reversible tells whether there was a whole snapshot before the change. Envoy keeps
// what it took of a first publish: half of it is better than none, and its next start
// must find the files that its bootstrap names.
func (in *Intent) reversible() bool { return in.From != "" }

// intend is the intent of p, and the bytes that it saves for the way back. Where a
// change was interrupted the way back leads to before that one.
func (d *Dir) intend(p Plan, prev Manifest, interrupted *Intent) (Intent, []staged, error) {
	in := Intent{Layout: layout, From: prev.Snapshot, To: p.Manifest.Snapshot, Direction: Forward, Begun: time.Now().UTC().Round(0), Attempt: 1, Manifest: prev}
	if interrupted != nil {
		in.From, in.Manifest, in.Attempt = interrupted.From, interrupted.Manifest, interrupted.Attempt+1
	}
	if p.Confirm == nil {
		return in, nil, nil
	}
	var files []staged
	keep := func(f File) saved {
		// Beside those of the interrupted change, which this one may need.
		name := fmt.Sprintf("%d-%04d", in.Attempt, len(files)+1)
		files = append(files, staged{f, undoPath + "/" + name})
		return saved{Path: f.Path, Saved: name, Sum: sum(f.Data), Version: f.Version, Secret: f.Secret}
	}
	was := make(map[string]saved) // before the first step that moves it
	for _, f := range interrupted.first() {
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
				// What does not go back has no way back by its writings either.
				if was[name].Saved != "" {
					step.Files = append(step.Files, keep(f))
				}
				continue
			}
			if _, known := was[name]; !known {
				var err error
				if was[name], err = d.now(name, prev, keep); err != nil {
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
	in.inherit(interrupted)
	if p.WayBack != nil {
		save := func(k Kept) intentKept {
			if k.File.Data == nil {
				return intentKept{}
			}
			return intentKept{keep(k.File), k.Going}
		}
		in.WayBack = &intentWayBack{save(p.WayBack.Taken), save(p.WayBack.Refused)}
	}
	return in, files, nil
}

// inherit takes over what the interrupted change moves and this one does not. What
// had come goes last of all: whatever names it has gone by then. What had changed or
// gone comes back first of all, before what named it.
func (in *Intent) inherit(interrupted *Intent) {
	come, rest := intentStep{Name: "of the interrupted change"}, intentStep{Name: "of the interrupted change"}
	own := in.paths()
	for _, f := range slices.Backward(interrupted.first()) {
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

// now is the file name as it is out, kept where it can be put back.
func (d *Dir) now(name string, m Manifest, keep func(File) saved) (saved, error) {
	f, err := d.asPublished(name, m)
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

var errEdited = errors.New("not as it was published")

// asPublished is the file name as it is out. The error is errEdited where it is not
// as it was published, or is gone.
func (d *Dir) asPublished(name string, m Manifest) (File, error) {
	was, known := m.Files[name]
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
