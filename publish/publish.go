package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
)

// Result is what a publish moved, whether it ended well or not.
type Result struct {
	Steps []StepResult
	// Undone is what was put back after Envoy had refused a step.
	Undone []StepResult
}

// StepResult is the files that one step wrote and removed: one at least.
type StepResult struct {
	Name    string
	Written []string
	Removed []string
}

// Publish brings the directory to the state of p. Every new byte is staged
// before the first file moves, and nothing stays in the stage.
//
// When it fails, each published file is old or new and whole, Result tells what
// moved, and the next Publish carries on from there. A ctx that ends stops it
// between two steps, never within one. A directory that was taken away under d is
// ErrLost. A *RefusedError says that Envoy refused a step: what had moved is put
// back and the snapshot is on record as held, unless nothing was out before.
func (d *Dir) Publish(ctx context.Context, p Plan) (Result, error) {
	if d.lock == nil {
		return Result{}, fmt.Errorf("publish %s: %w", d.out, fs.ErrClosed)
	}
	if !stillHolds(d.lock, d.path(lockPath)) {
		return Result{}, fmt.Errorf("publish %s: %w", d.out, ErrLost)
	}
	interrupted, err := ReadIntent(d.out)
	if err != nil {
		return Result{}, err
	}
	if interrupted != nil && interrupted.Direction == Back {
		return Result{}, fmt.Errorf("publish %s: a change is half put back: recover first", d.out)
	}
	prev, err := ReadManifest(d.out)
	if err != nil {
		return Result{}, err
	}
	p.Manifest.Files = p.after(prev.Files)
	if p, err = pending(d.out, p, d.gid, interrupted); err != nil {
		return Result{}, err
	}
	if len(p.Steps) == 0 && interrupted == nil && p.Manifest.same(prev) {
		return Result{}, nil
	}
	if err := d.reachable(p); err != nil {
		return Result{}, err
	}
	// A clean-up that failed the last time must not block this one.
	if err := errors.Join(d.clear(stagePath), d.clear(undoPath, interrupted.needs()...)); err != nil {
		return Result{}, err
	}
	res, err := d.carryOut(ctx, p, prev, interrupted)
	if cerr := d.clear(stagePath); cerr != nil {
		err = errors.Join(err, cerr)
	}
	return res, err
}

// records are our own files around the steps of p: the intent and the manifest that
// hold while it is under way, and the manifest that holds afterwards. A manifest is
// left out where the one on disk says the same.
func records(p Plan, prev Manifest, in Intent) (before, after []File, err error) {
	var list []File
	add := func(f File, ferr error) {
		list, err = append(list, f), errors.Join(err, ferr)
	}
	if len(p.Steps) > 0 {
		add(recordFile(intentPath, in))
		if m := p.Manifest.during(prev); !m.same(prev) {
			add(m.file())
		}
	}
	before, list = list, nil
	if len(p.Steps) > 0 || !p.Manifest.same(prev) {
		add(p.Manifest.file())
	}
	return before, list, err
}

// carryOut stages the records and all that p writes, saves what it replaces, then
// moves it. The last record is staged with the rest: a disk that fills up once the
// first file has moved can't keep it from being written.
func (d *Dir) carryOut(ctx context.Context, p Plan, prev Manifest, interrupted *Intent) (Result, error) {
	in, replaced, err := d.intend(p, prev, interrupted)
	if err != nil {
		return Result{}, err
	}
	before, after, err := records(p, prev, in)
	if err != nil {
		return Result{}, err
	}
	ready, err := d.stageAll(ctx, slices.Concat(before, after, p.files()))
	if err == nil && len(replaced) > 0 {
		err = d.write(ctx, undoPath, replaced)
	}
	if err != nil {
		return Result{}, err
	}
	first, last, files := ready[:len(before)], ready[len(before):len(before)+len(after)], ready[len(before)+len(after):]
	if err := d.record(first); err != nil {
		return Result{}, err
	}
	var res Result
	res.Steps, err = d.move(ctx, p, files, in.reversible())
	refused, ok := errors.AsType[*RefusedError](err)
	if ok && in.reversible() {
		back, turned := d.turn(in, p, res.Steps, refused)
		if turned != nil {
			return res, errors.Join(err, turned)
		}
		if res.Undone, turned = d.undo(ctx, back, p); turned != nil {
			err = errors.Join(err, turned)
		}
		return res, err
	}
	if err != nil && !ok {
		return res, err
	}
	if err := d.record(last); err != nil {
		return res, err
	}
	if ferr := d.finish(); ferr != nil {
		err = errors.Join(err, ferr)
	}
	return res, err
}

// move carries the steps out. When Envoy refuses one it stops there, or goes on and
// says so at the end.
func (d *Dir) move(ctx context.Context, p Plan, ready []staged, stop bool) (done []StepResult, err error) {
	var refused error
	for i, s := range p.Steps {
		if p.Confirm != nil {
			if err := p.Confirm.Before(ctx, s); err != nil {
				return done, fmt.Errorf("step %s: %w", s.Name, err)
			}
		}
		moved, err := d.step(s, ready[:len(s.Write)])
		ready = ready[len(s.Write):]
		if len(moved.Written)+len(moved.Removed) > 0 {
			done = append(done, moved)
		}
		if err != nil {
			return done, fmt.Errorf("step %s: %w", s.Name, err)
		}
		d.log.Info("published", "step", s.Name, "written", len(moved.Written), "removed", len(moved.Removed))
		answered := false
		if p.Confirm != nil {
			answered, err = p.Confirm.After(ctx, s)
			_, no := errors.AsType[*RefusedError](err)
			switch {
			case no && !stop:
				refused = cmp.Or(refused, err)
			case no:
				return done, err
			case ctx.Err() != nil:
				return done, d.stopped(ctx, "after step "+s.Name)
			case err != nil:
				return done, fmt.Errorf("step %s: %w", s.Name, err)
			}
		}
		if i+1 < len(p.Steps) {
			gap := p.Gap
			if answered {
				gap = 0
			}
			if err := d.wait(ctx, gap, s.Name); err != nil {
				return done, err
			}
		}
	}
	return done, refused
}
