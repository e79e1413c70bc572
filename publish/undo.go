package publish

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
)

// Recover finishes what a writer that was killed, or met an error, had begun to put
// back; p says who confirms, and the gap. It tells whether there was anything. It
// comes before each Publish, which refuses to start from there. A change that was on
// its way forward is not its matter: the next Publish goes on from what is out.
func (d *Dir) Recover(ctx context.Context, p Plan) (bool, error) {
	if err := d.usable("recover"); err != nil {
		return false, err
	}
	in, err := readIntent(d.root)
	if err != nil || in == nil || in.Direction != Back {
		return false, err
	}
	d.log.Warn("a change that Envoy refused was not put back whole, that goes on", "snapshot", in.To)
	if err := d.begin(); err != nil {
		return true, err
	}
	_, err = d.undo(ctx, in, p)
	return true, errors.Join(err, d.tidy())
}

// turnBack puts back what p has done.
func (d *Dir) turnBack(ctx context.Context, in Intent, p Plan, done []StepResult, refused *RefusedError) ([]StepResult, error) {
	back, err := d.turn(in, p, done, refused)
	if err != nil {
		return nil, fmt.Errorf("put back: %w", err)
	}
	return d.undo(ctx, back, p)
}

// turn begins the way back of p, of which done has moved: from here on a writer
// that is killed has a successor that goes on with it. What does not go back is left
// out of the intent, and is on its record as it is out now.
func (d *Dir) turn(in Intent, p Plan, done []StepResult, refused *RefusedError) (*Intent, error) {
	in.Direction, in.Refusal = Back, &refused.Refusal
	steps, err := d.goBack(in.Steps, refused.Keep)
	if err != nil {
		return nil, err
	}
	in.Steps = steps
	goes, moved := in.paths(), Plan{Steps: p.Steps[:len(done)]}
	files := maps.Clone(in.Manifest.Files)
	if files == nil {
		files = make(map[string]Published)
	}
	for name, as := range moved.after(nil) {
		if !goes[name] {
			files[name] = as
		}
	}
	for _, s := range moved.Steps {
		for _, name := range s.Remove {
			if !goes[name] {
				delete(files, name)
			}
		}
	}
	in.Manifest.Files = files
	return &in, d.put(intentPath, in)
}

// goBack is what goes back of steps: all but the files to keep, as far as to a file
// that was edited by hand before it moved. That one can't, and what went out before
// it stays as well, since it may be named there.
func (d *Dir) goBack(steps []intentStep, keep []string) ([]intentStep, error) {
	keeps := make(map[string]bool)
	for _, name := range keep {
		keeps[name] = true
	}
	var back []intentStep
	for _, s := range slices.Backward(steps) {
		step := intentStep{Name: s.Name}
		for _, f := range s.Files {
			if f.Edited {
				moved, err := d.movedSince(f)
				if err != nil {
					return nil, err
				}
				if moved {
					d.log.Warn("a file was edited by hand before: it is not put back, nor is what went out before it", "file", f.Path)
					// What came may be named there, whichever step it came with.
					for i, s := range back {
						back[i].Files = slices.DeleteFunc(s.Files, func(f saved) bool { return f.Saved == "" })
					}
					slices.Reverse(back)
					return back, nil
				}
			} else if f.Saved == "" || !keeps[f.Path] {
				step.Files = append(step.Files, f)
			}
		}
		back = append(back, step)
	}
	slices.Reverse(back)
	return back, nil
}

// movedSince tells whether a file is not as it was found.
func (d *Dir) movedSince(f saved) (bool, error) {
	now := ""
	data, _, err := d.root.read(f.Path, MaxFile)
	switch {
	case err == nil:
		now = sum(data)
	case !errors.Is(err, fs.ErrNotExist) && !isOther(err):
		return false, err
	}
	return now != f.Sum, nil
}

// back is the plan that undoes a change: its steps from the last to the first. What had
// come goes with the last of them: over an interrupted change it may have come before
// what names it, and yet move again after that.
func (d *Dir) back(in *Intent, p Plan) (Plan, error) {
	p.Steps, p.Again, p.Manifest = nil, nil, in.Manifest
	var come []string
	for _, s := range slices.Backward(in.Steps) {
		step := Step{Name: s.Name}
		for _, f := range s.Files {
			if f.Saved == "" {
				come = append(come, f.Path)
				continue
			}
			name := undoPath + "/" + f.Saved
			data, _, err := d.root.read(name, MaxFile)
			if err == nil && sum(data) != f.Sum {
				err = fmt.Errorf("read %s: not what was saved", d.path(name))
			}
			if err != nil {
				return Plan{}, fmt.Errorf("%s: %w (remove %s %s)", f.Path, err, d.path(intentPath), startAnew)
			}
			step.Write = append(step.Write, File{Path: f.Path, Data: data, Version: f.Version, Secret: f.Secret})
		}
		p.Steps = append(p.Steps, step)
	}
	if n := len(p.Steps); n > 0 {
		p.Steps[n-1].Remove = come
	}
	return p, nil
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
	if p, err = pending(d.root, p, d.gid, nil); err != nil {
		return nil, fmt.Errorf("put back: %w", err)
	}
	ready, err := d.stageAll(ctx, p.files())
	if err != nil {
		return nil, fmt.Errorf("put back: %w", err)
	}
	done, _, err := d.move(ctx, p, ready, false)
	if err != nil {
		return done, fmt.Errorf("put back: %w", err)
	}
	if in.Refusal != nil {
		// A trim leads to the snapshot that is out: that one is not held.
		if err := d.refused(*in.Refusal, in.To != in.From); err != nil {
			return done, err
		}
	}
	now, err := ReadManifest(d.out)
	if err != nil {
		return done, err
	}
	if err := d.put(manifestPath, in.Manifest.anew(now).normal()); err != nil {
		return done, err
	}
	return done, d.finish()
}

// finish takes the intent away.
func (d *Dir) finish() error {
	if err := d.holding(); err != nil {
		return err
	}
	if err := d.unlink(intentPath); err != nil {
		return err
	}
	if err := d.sync(private); err != nil {
		return err
	}
	return d.clear(undoPath, nil)
}
