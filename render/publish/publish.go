package publish

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"xdspub/event"
)

// Result lists the files that a publish moved, also where it failed.
type Result struct {
	Steps []StepResult
	// Undone are the steps that were rolled back after Envoy's refusal.
	Undone []StepResult
}

// StepResult lists the files that a step wrote and removed, at least one.
type StepResult struct {
	Name    string
	Written []string
	Removed []string
}

// Publish brings the directory to the state of p. Publish stages every new byte before the first file moves,
// and leaves nothing in the stage.
//
// If Publish fails, each published file is old or new and whole. Result has the moved files, and the next
// Publish carries on. A ctx that ends stops Publish between two steps, never within a step. If the directory
// was removed or replaced, the error is ErrLost.
//
// A *RefusedError means that Envoy refused a step. The moved files are rolled back, and the snapshot is on
// record as held. If no snapshot was on record before, the files stay, and the refusal is on record. If
// another error is joined to the *RefusedError, the rollback is incomplete: Recover completes it, or the next
// Publish asks Envoy once more.
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
	res, err := d.carryOut(ctx, p, prev, interrupted)
	if terr := d.tidy(); terr != nil { // else a refusal stays that alone
		err = errors.Join(err, terr)
	}
	return res, err
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

// refreshRecord returns the published files with the present contents of the files that the change in may have
// moved. A change without a Confirmer may have moved any file.
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
