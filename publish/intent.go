package publish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	intentPath = private + "/intent"
	undoPath   = private + "/undo"
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
	// Steps are the files that the change moves, and where the bytes are that they
	// had before. They are noted only where somebody can refuse the change.
	Steps []intentStep `json:"steps,omitempty"`
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
	Saved   string `json:"saved,omitempty"`
	Version string `json:"version,omitempty"`
	Secret  bool   `json:"secret,omitempty"`
}

// ReadIntent reads the record of the change that is under way in the directory
// out, or nil where there is none. It takes no lock.
func ReadIntent(out string) (*Intent, error) {
	name := filepath.Join(out, intentPath)
	data, err := readRegular(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var in Intent
	err = json.Unmarshal(data, &in)
	if err == nil && in.Direction != Forward && in.Direction != Back {
		err = fmt.Errorf("direction %q", in.Direction)
	}
	for _, s := range in.Steps {
		for _, f := range s.Files {
			if err == nil && f.Saved != "" && !filepath.IsLocal(f.Saved) {
				err = fmt.Errorf("saved as %q", f.Saved)
			}
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: damaged: %w (remove the file and publish again: the change then starts from what is out)", name, err)
	}
	return &in, nil
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

// needs are the files in .xdspub/undo that a way back needs.
func (in *Intent) needs() []string {
	var list []string
	if in != nil {
		for _, s := range in.Steps {
			for _, f := range s.Files {
				list = append(list, f.Saved)
			}
		}
	}
	return list
}

// has tells whether the change moves the file name.
func (in *Intent) has(name string) bool {
	return slices.ContainsFunc(in.first(), func(f saved) bool { return f.Path == name })
}

// reversible tells whether there was anything before the change. Envoy keeps what
// it took of a first publish: half of it is better than none, and its next start
// must find the files that its bootstrap names.
func (in *Intent) reversible() bool {
	return slices.ContainsFunc(in.first(), func(f saved) bool { return f.Saved != "" })
}

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
		files = append(files, staged{f, d.path(undoPath + "/" + name)})
		return saved{f.Path, name, f.Version, f.Secret}
	}
	before := make(map[string]saved) // the interrupted change
	for _, f := range interrupted.first() {
		before[f.Path] = f
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
				step.Files = append(step.Files, keep(f))
				continue
			}
			if was, ok := before[name]; ok {
				step.Files = append(step.Files, was)
				continue
			}
			f, there, err := d.asPublished(name, prev)
			switch {
			case errors.Is(err, errEdited): // what was edited by hand is not put back
			case err != nil:
				return in, nil, err
			case !there:
				step.Files = append(step.Files, saved{Path: name})
			default:
				step.Files = append(step.Files, keep(f))
			}
		}
		for _, f := range s.Write {
			written[f.Path] = f
		}
		in.Steps = append(in.Steps, step)
	}
	// What the interrupted change has moved and this one does not goes back last.
	rest := intentStep{Name: "of the interrupted change"}
	for _, f := range interrupted.first() {
		if !in.has(f.Path) {
			rest.Files = append(rest.Files, f)
		}
	}
	if len(rest.Files) > 0 {
		in.Steps = slices.Insert(in.Steps, 0, rest)
	}
	return in, files, nil
}

var errEdited = errors.New("not as it was published")

// asPublished is the file name as it is out, if there is one.
func (d *Dir) asPublished(name string, m Manifest) (f File, there bool, err error) {
	data, err := readRegular(d.path(name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return File{}, false, nil
	case errors.Is(err, errNotRegular):
		return File{}, false, errEdited
	case err != nil:
		return File{}, false, err
	}
	was, known := m.Files[name]
	if known && was.Sum != sum(data) {
		return File{}, false, errEdited
	}
	fi, err := os.Lstat(d.path(name))
	if err != nil {
		return File{}, false, err
	}
	return File{Path: name, Data: data, Version: was.Version, Secret: fi.Mode().Perm() == File{Secret: true}.mode()}, true, nil
}

// back is the plan that undoes a change: its steps from the last to the first.
func (d *Dir) back(in *Intent, p Plan) (Plan, error) {
	p.Steps, p.Manifest = nil, in.Manifest
	for _, s := range slices.Backward(in.Steps) {
		step := Step{Name: s.Name}
		for _, f := range s.Files {
			if f.Saved == "" {
				step.Remove = append(step.Remove, f.Path)
				continue
			}
			data, err := os.ReadFile(d.path(undoPath + "/" + f.Saved))
			if err != nil {
				return Plan{}, err
			}
			step.Write = append(step.Write, File{Path: f.Path, Data: data, Version: f.Version, Secret: f.Secret})
		}
		p.Steps = append(p.Steps, step)
	}
	return p, nil
}

// Recover finishes what a writer that was killed had begun to put back. It tells
// whether there was anything. A change that was on its way forward is not its
// matter: the next Publish goes on from what is out.
func (d *Dir) Recover(ctx context.Context, p Plan) (bool, error) {
	in, err := ReadIntent(d.out)
	if err != nil || in == nil || in.Direction != Back {
		return false, err
	}
	d.log.Warn("a change that Envoy refused was not put back whole, that goes on", "snapshot", in.To)
	_, err = d.undo(ctx, in, p)
	return true, err
}

// turn begins the way back of p, of which done has moved: from here on a writer
// that is killed has a successor that goes on with it.
func (d *Dir) turn(in Intent, p Plan, done []StepResult, refused *RefusedError) (*Intent, error) {
	in.Direction, in.Refusal = Back, &refused.Refusal
	steps := in.Steps
	in.Steps = nil
	goes := make(map[string]bool) // back
	for _, s := range steps {
		back := intentStep{Name: s.Name}
		for _, f := range s.Files {
			if f.Saved == "" || !slices.Contains(refused.Keep, f.Path) {
				back.Files = append(back.Files, f)
				goes[f.Path] = true
			}
		}
		in.Steps = append(in.Steps, back)
	}
	files, after := maps.Clone(in.Manifest.Files), p.after(nil)
	for _, s := range done {
		for _, name := range s.Written {
			if !goes[name] && files != nil {
				files[name] = after[name]
			}
		}
	}
	in.Manifest.Files = files
	return &in, d.put(intentPath, in)
}

// undo puts back what the change had moved, and holds its snapshot.
func (d *Dir) undo(ctx context.Context, in *Intent, p Plan) ([]StepResult, error) {
	p, err := d.back(in, p)
	if err != nil {
		return nil, fmt.Errorf("put back: %w", err)
	}
	if p.Confirm != nil {
		p.Confirm = undoing{p.Confirm, ctx, d}
	}
	// Who asks us to end has Envoy run what it ran before: that is a matter of
	// moments, and only the waiting for it is left out.
	ctx = context.WithoutCancel(ctx)
	manifest := p.Manifest
	if p, err = pending(d.out, p, d.gid, nil); err != nil {
		return nil, fmt.Errorf("put back: %w", err)
	}
	if err := d.clear(stagePath); err != nil {
		return nil, err
	}
	ready, err := d.stageAll(ctx, p.files())
	if err != nil {
		return nil, fmt.Errorf("put back: %w", err)
	}
	done, err := d.move(ctx, p, ready, false)
	if err != nil {
		return done, fmt.Errorf("put back: %w", err)
	}
	if in.Refusal != nil && in.To != in.From {
		if err := d.hold(*in.Refusal); err != nil {
			return done, err
		}
	}
	if err := d.put(manifestPath, manifest.normal()); err != nil {
		return done, err
	}
	return done, d.finish()
}

// finish takes the intent away.
func (d *Dir) finish() error {
	if err := d.disk.Remove(d.path(intentPath)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := d.syncFolder(d.path(private)); err != nil {
		return err
	}
	return d.clear(undoPath)
}
