package publish

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"xdspub/event"
)

// Recover completes the rollback that a writer began before it was killed or failed. Recover takes Confirm and
// Gap of p, and reports whether a rollback was unfinished. Call Recover before each Publish, which refuses to
// start from an incomplete rollback. A change on its way forward needs no Recover: the next Publish starts
// from the files on disk.
func (d *Dir) Recover(ctx context.Context, p Plan) (bool, error) {
	if err := d.usable("recover"); err != nil {
		return false, err
	}
	in, err := readIntent(d.root)
	if err != nil || in == nil || in.Direction != Back {
		return false, err
	}
	d.log.Write(event.RollbackResumed{Snapshot: in.To})
	if err := d.begin(); err != nil {
		return true, err
	}
	_, err = d.undo(ctx, in, p)
	return true, errors.Join(err, d.tidy())
}

// rollBack rolls back what c has done; Envoy refused the last step of it.
func (d *Dir) rollBack(ctx context.Context, c *prepared, done []StepResult, refused *RefusedError) ([]StepResult, error) {
	back, err := d.startRollback(c, done, refused)
	if err != nil {
		return nil, fmt.Errorf("roll back: %w", err)
	}
	return d.undo(ctx, back, c.Plan)
}

// startRollback begins the rollback of the moved files: if this writer is killed, the next one completes the
// rollback. Files that the rollback leaves are not in the intent; its record has their present state.
func (d *Dir) startRollback(c *prepared, done []StepResult, refused *RefusedError) (*Intent, error) {
	in, moved := c.intent, Plan{Steps: c.Steps[:len(done)]}
	in.Direction, in.Refusal = Back, &refused.Refusal
	last := len(moved.Steps) - 1
	going := in.keepAdded(moved.Steps[:last])
	came, err := d.added(in.Steps)
	if err != nil {
		return nil, err
	}
	goes := make(map[string]bool) // with the refused step
	for _, f := range moved.Steps[last].Write {
		goes[f.Path] = true
	}
	for _, name := range c.added {
		delete(goes, name)
	}
	came = slices.DeleteFunc(came, func(name string) bool { return goes[name] })
	for _, name := range came {
		going = append(going, Retired{File: name})
	}
	in.Manifest = in.Manifest.retiring(going)
	if in.Steps, err = d.stepsToRollBack(in.Steps, came, refused.Keep); err != nil {
		return nil, err
	}
	in.Manifest.Files = in.record(moved)
	in.Layout = in.Manifest.Files.layout()
	return &in, d.put(intentPath, in)
}

// record returns the published files after the rollback of what has moved.
func (in *Intent) record(moved Plan) PublishedFiles {
	goes, change := in.paths(), moved.change(NewReader(""))
	maps.DeleteFunc(change, func(name string, _ *Published) bool { return goes[name] })
	for _, s := range slices.Backward(in.Steps) {
		for _, f := range s.Files {
			if f.Saved != "" { // kept files differ from their original
				change[f.Path] = &Published{f.Version, f.Sum}
			}
		}
	}
	return in.Manifest.Files.with(change)
}

// keepAdded makes the rollback give the file of in.Rollback the bytes for a change of which
// Envoy has taken these steps. It returns what the change added and the file keeps.
func (in *Intent) keepAdded(taken []Step) []Retired {
	if in.Rollback == nil {
		return nil
	}
	to := in.Rollback.Refused
	if f := in.Rollback.Taken.File; f.Saved != "" && slices.ContainsFunc(taken, func(s Step) bool { return s.writes(f.Path) }) {
		to = in.Rollback.Taken
	}
	in.Rollback = nil
	if to.File.Saved == "" {
		return nil
	}
	steps, kept := slices.Clone(in.Steps), false
	for i, s := range steps {
		steps[i].Files = slices.Clone(s.Files)
		for j, f := range s.Files {
			if f.Path == to.File.Path && f.Saved != "" {
				steps[i].Files[j], kept = to.File, true
			}
		}
	}
	if !kept {
		return nil
	}
	in.Steps = steps
	return to.Retired
}

// added returns the published files that the change added. They stay until their trim, because clusters that
// stay may name them, and draining listeners may read them. The rollback removes only the files that the
// refused step itself added.
func (d *Dir) added(steps []intentStep) ([]string, error) {
	var list []string
	for _, s := range steps {
		for _, f := range s.Files {
			if f.Saved != "" || f.Edited {
				continue
			}
			out, err := d.root.removable(f.Path)
			if err != nil {
				return nil, err
			}
			if out {
				list = append(list, f.Path)
			}
		}
	}
	return list, nil
}

// stepsToRollBack returns the part of steps to roll back: all files except added files and keep, back to a
// file that was edited by hand before it moved. That file can't be restored. The earlier steps stay, too,
// because the file may name their files.
func (d *Dir) stepsToRollBack(steps []intentStep, came, keep []string) ([]intentStep, error) {
	keeps, stays := make(map[string]bool), make(map[string]bool)
	for _, name := range keep {
		keeps[name] = true
	}
	for _, name := range came {
		stays[name] = true
	}
	var back []intentStep
	for _, s := range slices.Backward(steps) {
		step := intentStep{Name: s.Name}
		for _, f := range s.Files {
			if f.Edited {
				moved, err := movedSince(d.root, f)
				if err != nil {
					return nil, err
				}
				if moved {
					d.log.Write(event.RollbackKeptEdit{File: f.Path})
					// It may name a file that any of the steps added.
					for i, s := range back {
						back[i].Files = slices.DeleteFunc(s.Files, func(f saved) bool { return f.Saved == "" })
					}
					slices.Reverse(back)
					return back, nil
				}
			} else if f.Saved == "" && !stays[f.Path] || f.Saved != "" && !keeps[f.Path] {
				step.Files = append(step.Files, f)
			}
		}
		back = append(back, step)
	}
	slices.Reverse(back)
	return back, nil
}

// movedSince reports whether a file has changed since it was saved.
func movedSince(root folder, f saved) (bool, error) {
	now := ""
	data, _, err := root.read(f.Path, MaxFile)
	switch {
	case err == nil:
		now = sum(data)
	case !errors.Is(err, fs.ErrNotExist) && !isOther(err):
		return false, err
	}
	return now != f.Sum, nil
}

// rollbackPlan returns the plan that rolls a change back: its steps from the last to the first. The
// last one removes the files that the change added: with an interrupted change before it,
// a file may be added before what names it, and yet move again after that.
func (d *Dir) rollbackPlan(in *Intent, p Plan) (Plan, error) {
	p.Steps, p.Republish, p.Manifest = nil, nil, in.Manifest
	var come []string
	for _, s := range slices.Backward(in.Steps) {
		step := Step{Name: s.Name}
		for _, f := range s.Files {
			if f.Saved == "" {
				come = append(come, f.Path)
				continue
			}
			data, err := readSaved(d.root, f)
			if err != nil {
				return Plan{}, err
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

// readSaved reads the bytes that were saved for a rollback.
func readSaved(root folder, f saved) ([]byte, error) {
	name := undoPath + "/" + f.Saved
	data, _, err := root.read(name, MaxFile)
	if err == nil && sum(data) != f.Sum {
		err = fmt.Errorf("read %s: changed since it was saved", root.path(name))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w (remove %s %s)", f.Path, err, root.path(intentPath), publishAgain)
	}
	return data, nil
}

// undo restores what the change moved, and holds its snapshot.
func (d *Dir) undo(ctx context.Context, in *Intent, p Plan) ([]StepResult, error) {
	p, err := d.rollbackPlan(in, p)
	if err != nil {
		return nil, fmt.Errorf("roll back: %w", err)
	}
	if p.Confirm != nil {
		p.Confirm = undoing{p.Confirm, ctx, d}
	}
	// A context that ends does not stop the rollback, which is a matter of moments:
	// Envoy must run what it ran before. It ends only the waits.
	ctx = context.WithoutCancel(ctx)
	if p, err = pending(d.root, p, d.gid, nil, d.reader); err != nil {
		return nil, fmt.Errorf("roll back: %w", err)
	}
	ready, err := d.stageAll(ctx, p.files())
	if err != nil {
		return nil, fmt.Errorf("roll back: %w", err)
	}
	done, _, err := d.move(ctx, p, ready, false)
	if err != nil {
		return done, fmt.Errorf("roll back: %w", err)
	}
	if in.Refusal != nil {
		// A trim leads to the published snapshot, which is not held.
		if err := d.refused(*in.Refusal, in.To != in.From); err != nil {
			return done, err
		}
	}
	now, err := ReadManifest(d.out)
	if err != nil {
		return done, err
	}
	if err := d.put(manifestPath, in.Manifest.restartTrimDelays(now).normal()); err != nil {
		return done, err
	}
	return done, d.finish()
}

// finish removes the intent, and what only it refers to.
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
	return errors.Join(d.clear(undoPath, nil), d.clearBases(nil))
}
