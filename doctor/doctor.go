// Package doctor finds what on this machine will bite: limits that an Envoy is about to exceed, permissions, file
// systems, an Envoy that reads other files, and leftovers of killed processes. Each check is a row of the table checks.
//
//	report, err := doctor.Examine(ctx, doctor.Options{Status: status.Options{Out: "out"}})
//	diag.WriteText(os.Stdout, report.Findings, diag.TextOptions{})
//
// Examine changes nothing and takes no lock, so that it works beside a running watch. Fix and Prune take the lock.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"xdspub/diag"
	"xdspub/doctor/machine"
	"xdspub/envoy"
	"xdspub/internal/fspath"
	"xdspub/internal/parallel"
	"xdspub/render/published"
	"xdspub/watch/status"
)

// Options say what to examine.
type Options struct {
	// Status has the output directory, and the Envoys. Without Envoys, Examine asks those of the running watch.
	Status status.Options
	// Source is the source tree; empty means that of the running watch, if any.
	Source string
	// Polled means that the settings make a watch poll the source tree.
	Polled bool
	// InotifyBudget is that of the settings; 0 if unknown.
	InotifyBudget int
	// User is as whom the Envoys run; nil means the user of the processes that Examine finds.
	User *machine.User
}

// Report is the result of an examination.
type Report struct {
	Out string `json:"out"`
	// Findings are the faults. Errors break Envoy or a publish now, or at the next start; warnings may do so later.
	Findings diag.List `json:"diagnostics"`
	Summary  Summary   `json:"summary"`
	// Fix adds removed files to Fixed, and Prune adds removed folders to Pruned.
	Fixed  []string `json:"fixed"`
	Pruned []string `json:"pruned"`

	examined *examination
}

// Summary counts the checks, and the findings by severity.
type Summary struct {
	Checks int `json:"checks"`
	// Incomplete counts the checks that could not look everywhere: see the findings not-examined.
	Incomplete int `json:"incomplete"`
	Errors     int `json:"errors"`
	Warnings   int `json:"warnings"`
	Infos      int `json:"infos"`
}

// String returns the summary in words.
func (s Summary) String() string {
	text := fmt.Sprintf("%s, %s in %s", diag.Count(s.Errors, "error"), diag.Count(s.Warnings, "warning"), diag.Count(s.Checks, "check"))
	if s.Incomplete > 0 {
		text += fmt.Sprintf(", %d of them incomplete", s.Incomplete)
	}
	return text
}

// examination is what the checks look at.
type examination struct {
	Options
	out    string // without links
	now    time.Time
	status *status.Status   // nil if the output directory can't be read
	damage error            // why it can't be read
	state  *published.State // nil if nothing is published
	// instances are the inotify instances that one Envoy takes for the published files, and polled the files that it
	// polls.
	instances int
	polled    map[string]bool
	processes *machine.Processes // nil if the system does not tell
	envoys    []*seen
	// runs are the processes of envoys, and other processes that watch a folder of the output directory.
	runs []*machine.Process
}

// seen has the answers of one Envoy.
type seen struct {
	admin   *envoy.Admin
	about   *envoy.About // nil after an error
	err     error
	report  *status.EnvoyReport // nil if the output directory can't be read
	process *machine.Process    // nil if it is not on this machine, or not visible
}

// Examine runs all checks. An error means that the output directory does not exist, or that ctx has ended.
func Examine(ctx context.Context, o Options) (*Report, error) {
	e, err := look(ctx, o)
	if err != nil {
		return nil, err
	}
	list, incomplete := run(ctx, e)
	r := &Report{Out: o.Status.Out, Findings: append(diag.List{}, list...), Fixed: []string{}, Pruned: []string{}, examined: e}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	r.Summary = Summary{len(checks), incomplete, r.Findings.Count(diag.Error), r.Findings.Count(diag.Warning), r.Findings.Count(diag.Info)}
	return r, nil
}

// look asks the watch, the Envoys and the system, once for all checks.
func look(ctx context.Context, o Options) (*examination, error) {
	out := o.Status.Out
	switch info, err := os.Stat(out); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("output directory %s: no such directory; xdspub render and xdspub watch create it", out)
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, &os.PathError{Op: "doctor", Path: out, Err: syscall.ENOTDIR}
	}
	e := &examination{Options: o, out: fspath.Resolve(out), now: time.Now()}
	e.Status.Lenient = true
	if e.status, e.damage = status.Ask(ctx, e.Status); e.damage == nil {
		e.damage = e.read()
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if list, err := machine.System.Scan(ctx); err == nil {
		e.processes = list
	}
	if err := e.askEnvoys(ctx); err != nil {
		return nil, err
	}
	e.findRuns()
	if e.Source == "" && e.status != nil && e.status.Watch != nil && e.status.Watch.Upstream == nil {
		e.Source = e.status.Watch.Source
	}
	return e, ctx.Err()
}

// read reads the published resources.
func (e *examination) read() error {
	reader, err := status.Reader(e.Status)
	if err != nil || reader == nil {
		return err
	}
	if e.state, err = reader.State(); err != nil {
		return err
	}
	e.polled = e.state.Polled()
	e.instances, err = e.state.Instances()
	return err
}

// askEnvoys asks each Envoy about itself.
func (e *examination) askEnvoys(ctx context.Context) error {
	admins := e.Status.Admins
	if len(admins) == 0 && e.status != nil {
		var err error
		if admins, err = e.status.AskedByWatch(); err != nil {
			return err
		}
	}
	var asking parallel.Group
	for i, admin := range admins {
		s := &seen{admin: admin}
		if e.status != nil && i < len(e.status.Envoys) {
			s.report = &e.status.Envoys[i]
		}
		e.envoys = append(e.envoys, s)
		asking.Go(func() { s.about, s.err = admin.About(ctx) })
	}
	asking.Wait()
	for _, s := range e.envoys {
		if s.about != nil && e.processes != nil {
			s.process = s.find(e.processes)
		}
	}
	return nil
}

// find returns the process of an Envoy: it listens at the address of the admin interface, and has started when the
// Envoy says that it has. A forwarder of a container listens there, too, and is older.
func (s *seen) find(all *machine.Processes) *machine.Process {
	const tolerance = 3 * time.Second // both times are to the second
	p := all.Listener(s.admin.Address())
	if p == nil || s.about.Started.IsZero() || p.Started.Sub(s.about.Started).Abs() > tolerance {
		return nil
	}
	return p
}

// findRuns sets runs.
func (e *examination) findRuns() {
	add := func(p *machine.Process) {
		if p != nil && !slices.Contains(e.runs, p) {
			e.runs = append(e.runs, p)
		}
	}
	for _, s := range e.envoys {
		add(s.process)
	}
	if e.processes == nil || e.state == nil {
		return
	}
	for _, p := range e.watchers(e.folders()) {
		add(p)
	}
}

// folders returns the folders of the published files, below the output directory.
func (e *examination) folders() (list []string) {
	for _, file := range e.state.Files {
		list = append(list, filepath.Dir(file))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// watchers returns the processes that watch some folders of the output directory.
func (e *examination) watchers(folders []string) (list []*machine.Process) {
	for _, folder := range folders {
		info, err := os.Lstat(filepath.Join(e.out, folder))
		if err != nil {
			continue
		}
		for _, p := range e.processes.Watching(machine.Inode(info)) {
			if !slices.Contains(list, p) {
				list = append(list, p)
			}
		}
	}
	return list
}

// envoyPath returns the output directory as Envoys see it.
func (e *examination) envoyPath() string {
	if e.state == nil {
		return e.out
	}
	return e.state.Manifest.EnvoyPath
}

// users returns the users of the Envoys, each once.
func (e *examination) users() (list []machine.User) {
	if e.User != nil {
		return []machine.User{*e.User}
	}
	for _, p := range e.runs {
		if !slices.ContainsFunc(list, func(u machine.User) bool { return u.ID == p.User.ID && slices.Equal(u.Groups, p.User.Groups) }) {
			list = append(list, p.User)
		}
	}
	return list
}
