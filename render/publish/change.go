package publish

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"xdspub/event"
)

// prepared is a Plan whose files are staged.
type prepared struct {
	Plan
	intent Intent
	// first and last are the records from before the first step and after the last one; files
	// are what the steps write.
	first, last, files []staged
	// added are the files that an earlier, interrupted change has added.
	added []string
	// drifted are the files of the steps that somebody has changed by hand.
	drifted map[string]bool
}

// prepare stages the records and all files that p writes, and saves the bytes that p replaces. The last record
// is staged with the files, so that a disk that fills up after the first rename can't prevent the record.
func (d *Dir) prepare(ctx context.Context, p Plan, prev Manifest, interrupted *Intent) (*prepared, error) {
	drifted, err := d.driftedBefore(p, prev, interrupted)
	if err != nil {
		return nil, err
	}
	in, replaced, err := d.intend(p, prev, interrupted)
	if err != nil {
		return nil, err
	}
	c := &prepared{intent: in, drifted: drifted}
	if interrupted != nil {
		if c.added, err = d.added(interrupted.Steps); err != nil {
			return nil, err
		}
	}
	base, err := d.fold(&p)
	if err != nil {
		return nil, err
	}
	c.Plan = p
	before, after, err := p.records(prev, in)
	if err != nil {
		return nil, err
	}
	before = slices.Concat(base, before)
	ready, err := d.stageAll(ctx, slices.Concat(before, after, p.files()))
	if err == nil && len(replaced) > 0 {
		err = d.write(ctx, undoPath, replaced)
	}
	if err != nil {
		return nil, err
	}
	c.first, ready = ready[:len(before)], ready[len(before):]
	c.last, c.files = ready[:len(after)], ready[len(after):]
	return c, nil
}

// carryOut prepares p, and moves what it writes.
func (d *Dir) carryOut(ctx context.Context, p Plan, prev Manifest, interrupted *Intent) (Result, error) {
	c, err := d.prepare(ctx, p, prev, interrupted)
	if err != nil {
		return Result{}, err
	}
	if err := d.record(c.first); err != nil {
		return Result{}, err
	}
	var res Result
	var refused *RefusedError
	res.Steps, refused, err = d.move(ctx, c.Plan, c.files, c.intent.reversible())
	switch {
	case err != nil:
	case refused == nil:
		err = d.complete(c)
	case c.intent.reversible():
		res.Undone, err = d.rollBack(ctx, c, res.Steps, refused)
	default:
		err = d.keepRefused(c, refused)
	}
	d.logMended(c, res)
	switch {
	case refused != nil && err != nil:
		err = errors.Join(refused, err)
	case refused != nil:
		err = refused
	}
	return res, err
}

// driftedBefore returns the files of the steps of p that somebody has changed by hand; none while a change is
// interrupted, because that change may have moved them.
func (d *Dir) driftedBefore(p Plan, prev Manifest, interrupted *Intent) (map[string]bool, error) {
	drifted := make(map[string]bool)
	if interrupted != nil {
		return drifted, nil
	}
	for _, s := range p.Steps {
		names := slices.Clone(s.Remove)
		for _, f := range s.Write {
			names = append(names, f.Path)
		}
		for _, name := range names {
			is, err := prev.driftedAt(d.root, name)
			if err != nil {
				return nil, err
			}
			if is {
				drifted[name] = true
			}
		}
	}
	return drifted, nil
}

// mostMended is how many files an event.DriftMended names.
const mostMended = 10

// logMended logs which of the drifted files have moved.
func (d *Dir) logMended(c *prepared, res Result) {
	mended := make(map[string]bool)
	for _, s := range res.Steps {
		for _, name := range slices.Concat(s.Written, s.Removed) {
			if c.drifted[name] {
				mended[name] = true
			}
		}
	}
	if files := slices.Sorted(maps.Keys(mended)); len(files) > 0 {
		d.log.Write(event.DriftMended{Count: len(files), Files: files[:min(len(files), mostMended)]})
	}
}

// complete puts the last record of a change of which all has moved.
func (d *Dir) complete(c *prepared) error {
	if err := d.record(c.last); err != nil {
		return err
	}
	if len(c.last) > 0 {
		d.reader.wrote(d.root, c.Manifest.normal())
	}
	return d.finish()
}

// keepRefused records a change that Envoy refused. The files of the change stay, and its snapshot is not held.
func (d *Dir) keepRefused(c *prepared, refused *RefusedError) error {
	if err := d.refused(refused.Refusal, false); err != nil {
		return err
	}
	if err := d.put(manifestPath, c.Manifest.normal()); err != nil {
		return err
	}
	return d.finish()
}

// move carries out the steps. When Envoy refuses a step, move stops if stop is set, and otherwise goes on.
func (d *Dir) move(ctx context.Context, p Plan, ready []staged, stop bool) (done []StepResult, refused *RefusedError, err error) {
	for i, s := range p.Steps {
		of := ready[:len(s.Write)]
		ready = ready[len(s.Write):]
		moved, answered, err := d.offer(ctx, p, s, of)
		if len(moved.Written)+len(moved.Removed) > 0 {
			done = append(done, moved)
		}
		no, ok := errors.AsType[*RefusedError](err)
		refused = cmp.Or(refused, no)
		switch {
		case ok && stop:
			return done, refused, nil
		case err != nil && !ok:
			return done, refused, err
		}
		if i+1 < len(p.Steps) {
			gap := p.Gap
			if answered {
				gap = 0
			}
			if err := d.wait(ctx, gap, s.Name); err != nil {
				return done, refused, err
			}
		}
	}
	return done, refused, nil
}

// offer carries a step out, and asks whether Envoy accepts it. It renames the files once more as
// long as Envoy refuses them for a reason that may pass (RefusedError.Again).
func (d *Dir) offer(ctx context.Context, p Plan, s Step, ready []staged) (moved StepResult, answered bool, err error) {
	for {
		if p.Confirm != nil {
			if err := p.Confirm.Before(ctx, s); err != nil {
				return moved, false, d.stopped("before step "+s.Name, cmp.Or(ctx.Err(), err))
			}
		}
		done, err := d.step(s, ready)
		if moved.Name == "" {
			moved = done
		}
		if err != nil {
			return moved, false, d.stopped("in step "+s.Name, err)
		}
		d.log.Write(event.StepPublished{Step: s.Name, Written: len(done.Written), Removed: len(done.Removed)})
		if p.Confirm == nil {
			return moved, false, nil
		}
		answered, err = p.Confirm.After(ctx, s)
		refused, ok := errors.AsType[*RefusedError](err)
		switch {
		case err == nil, ok && refused.Again == 0:
			return moved, answered, err
		case !ok:
			return moved, answered, d.stopped("after step "+s.Name, cmp.Or(ctx.Err(), err))
		}
		d.log.Write(event.StepRetried{Step: s.Name, Pause: refused.Again, Error: refused})
		if err := d.wait(ctx, refused.Again, s.Name); err != nil {
			return moved, answered, err
		}
		if ready, err = d.stageAs(ctx, "again", s.Write); err != nil {
			return moved, answered, err
		}
	}
}
