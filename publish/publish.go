package publish

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
)

// Result is what a publish moved, whether it ended well or not.
type Result struct {
	Steps []StepResult
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
// ErrLost.
func (d *Dir) Publish(ctx context.Context, p Plan) (Result, error) {
	if d.lock == nil {
		return Result{}, fmt.Errorf("publish %s: %w", d.out, fs.ErrClosed)
	}
	if !stillHolds(d.lock, d.path(lockPath)) {
		return Result{}, fmt.Errorf("publish %s: %w", d.out, ErrLost)
	}
	p, err := pending(d.out, p, d.gid)
	if err != nil {
		return Result{}, err
	}
	before, after, err := d.records(p)
	if err != nil || len(p.Steps)+len(after) == 0 {
		return Result{}, err
	}
	if err := d.reachable(p); err != nil {
		return Result{}, err
	}
	// A clean-up that failed the last time must not block this one.
	if err := d.clearStage(); err != nil {
		return Result{}, err
	}
	res, err := d.carryOut(ctx, p, before, after)
	if cerr := d.clearStage(); cerr != nil {
		err = errors.Join(err, cerr)
	}
	return res, err
}

// records are the manifests that p writes: the one that holds while it is under
// way and the one that holds afterwards. Each is left out where the one on disk
// says the same.
func (d *Dir) records(p Plan) (before, after []File, err error) {
	prev, err := ReadManifest(d.out)
	if err != nil {
		return nil, nil, err
	}
	if m := p.Manifest.during(prev); len(p.Steps) > 0 && !m.same(prev) {
		f, err := m.file()
		if err != nil {
			return nil, nil, err
		}
		before = append(before, f)
	}
	if m := p.Manifest; len(p.Steps) > 0 || !m.same(prev) {
		f, err := m.file()
		if err != nil {
			return nil, nil, err
		}
		after = append(after, f)
	}
	return before, after, nil
}

// carryOut stages the records and all that p writes, then moves it. The last
// record is staged with the rest: a disk that fills up once the first file has
// moved can't keep it from being written.
func (d *Dir) carryOut(ctx context.Context, p Plan, before, after []File) (Result, error) {
	files := slices.Concat(before, after)
	for _, s := range p.Steps {
		files = append(files, s.Write...)
	}
	ready, err := d.stageAll(ctx, files)
	if err != nil {
		return Result{}, err
	}
	take := func(n int) (taken []staged) {
		taken, ready = ready[:n], ready[n:]
		return taken
	}
	first, last := take(len(before)), take(len(after))
	if err := d.record(first); err != nil {
		return Result{}, err
	}
	var res Result
	for i, s := range p.Steps {
		if i > 0 {
			if err := d.wait(ctx, p.Gap, p.Steps[i-1].Name); err != nil {
				return res, err
			}
		}
		done, err := d.step(s, take(len(s.Write)))
		if len(done.Written)+len(done.Removed) > 0 {
			res.Steps = append(res.Steps, done)
		}
		if err != nil {
			return res, fmt.Errorf("step %s: %w", s.Name, err)
		}
		d.log.Info("published", "step", s.Name, "written", len(done.Written), "removed", len(done.Removed))
	}
	return res, d.record(last)
}
