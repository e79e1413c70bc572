package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"xdspub/event"
)

// Result lists the files that a publish moved, also where it failed.
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
// ErrLost.
//
// A *RefusedError says that Envoy refused a step: what had moved is put back and the
// snapshot is on record as held. Where no snapshot was on record before it stays, and
// the refusal is on record. With another error joined to it that did not end well:
// Recover goes on with it, or the next Publish asks Envoy once more.
func (d *Dir) Publish(ctx context.Context, p Plan) (Result, error) {
	if err := d.usable("publish"); err != nil {
		return Result{}, err
	}
	interrupted, prev, err := d.state()
	if err != nil {
		return Result{}, err
	}
	p.Manifest.Files = p.after(prev.Files, d.reader)
	if p, err = pending(d.root, p, d.gid, interrupted, d.reader); err != nil {
		return Result{}, err
	}
	if len(p.Steps) == 0 && interrupted == nil && p.Manifest.same(prev) {
		return Result{}, nil
	}
	// A clean-up that failed the last time must not block this one.
	if err := d.begin(); err != nil {
		return Result{}, err
	}
	if err := d.reachable(p); err != nil {
		return Result{}, err
	}
	drifted, err := d.driftedBefore(p, prev, interrupted)
	if err != nil {
		return Result{}, err
	}
	res, err := d.carryOut(ctx, p, prev, interrupted)
	d.logMended(drifted, res)
	if terr := d.tidy(); terr != nil { // else a refusal stays that alone
		err = errors.Join(err, terr)
	}
	return res, err
}

// driftedBefore returns the files of the steps of p that somebody has changed by hand. It returns none while
// a change is interrupted: that change may have moved them.
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
func (d *Dir) logMended(drifted map[string]bool, res Result) {
	mended := make(map[string]bool)
	for _, s := range res.Steps {
		for _, name := range slices.Concat(s.Written, s.Removed) {
			if drifted[name] {
				mended[name] = true
			}
		}
	}
	if files := slices.Sorted(maps.Keys(mended)); len(files) > 0 {
		d.log.Write(event.DriftMended{Count: len(files), Files: files[:min(len(files), mostMended)]})
	}
}

// state returns the change that was interrupted, or nil, and the record of what is published.
func (d *Dir) state() (*Intent, Manifest, error) {
	in, err := readIntent(d.root)
	if err != nil {
		return nil, Manifest{}, err
	}
	if in != nil && in.Direction == Back {
		return nil, Manifest{}, fmt.Errorf("publish %s: an interrupted rollback must finish first: run render or watch again", d.out)
	}
	m, err := d.reader.manifestIn(d.root)
	if m.Files.Incomplete() {
		d.log.Write(event.RecordIncomplete{Out: d.out})
	}
	if err != nil || in == nil {
		return nil, m, err
	}
	done, err := in.done(m)
	if err != nil {
		return nil, m, err
	}
	if done {
		return nil, m, d.finish()
	}
	m.Files, err = d.refreshRecord(m.Files, in)
	return in, m, err
}

// refreshRecord returns the published files where those that the change in may have moved are
// as they are on disk. A change without a Confirmer may have moved any.
func (d *Dir) refreshRecord(files PublishedFiles, in *Intent) (PublishedFiles, error) {
	change, moves := make(map[string]*Published), in.paths()
	for _, name := range files.Names() {
		if len(moves) > 0 && !moves[name] {
			continue
		}
		was, _ := files.Get(name)
		data, _, err := d.root.read(name, MaxFile)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			change[name] = nil
		case isOther(err):
		case err != nil:
			return PublishedFiles{}, err
		case sum(data) != was.Sum:
			change[name] = &Published{Sum: sum(data)}
		}
	}
	return files.with(change), nil
}

// prepared is a plan of which all is staged that it writes.
type prepared struct {
	Plan
	intent Intent
	// first and last are the records from before the first step and after the last one; files
	// are what the steps write.
	first, last, files []staged
	// added are the files that an interrupted change before it has added.
	added []string
}

// prepare stages the records and all that p writes, and saves what it replaces. The last record
// is staged with the rest: a disk that fills up once the first file has moved can't keep it
// from being written.
func (d *Dir) prepare(ctx context.Context, p Plan, prev Manifest, interrupted *Intent) (*prepared, error) {
	in, replaced, err := d.intend(p, prev, interrupted)
	if err != nil {
		return nil, err
	}
	c := &prepared{intent: in}
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
	switch {
	case refused != nil && err != nil:
		err = errors.Join(refused, err)
	case refused != nil:
		err = refused
	}
	return res, err
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

// keepRefused puts the record of a change that Envoy refused, and that stays and is not held.
func (d *Dir) keepRefused(c *prepared, refused *RefusedError) error {
	if err := d.refused(refused.Refusal, false); err != nil {
		return err
	}
	if err := d.put(manifestPath, c.Manifest.normal()); err != nil {
		return err
	}
	return d.finish()
}

// move carries the steps out. When Envoy refuses one it stops there, or goes on with
// the others.
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
