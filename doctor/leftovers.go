package doctor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"xdspub/diag"
	"xdspub/doctor/machine"
	"xdspub/render/publish"
	"xdspub/watch/control"
	"xdspub/watch/status"
)

// newestFile returns the time of the last change of a published file, by the clock of its file system.
func (e *examination) newestFile() (newest time.Time) {
	for _, file := range e.state.Files {
		if info, err := os.Lstat(filepath.Join(e.out, file)); err == nil && info.ModTime().After(newest) {
			newest = info.ModTime()
		}
	}
	return newest
}

// writer returns the ID of the process that publishes into the output directory: 0 for none, -1 for a process in
// another container.
func (e *examination) writer() (pid int, err error) {
	inode, err := publish.LockInode(e.out)
	if err != nil || inode == 0 {
		return 0, err
	}
	return machine.System.Locker(inode)
}

// leftovers reports what a killed process has left. While a process publishes, the files are its own.
func leftovers(_ context.Context, e *examination) (list diag.List) {
	if e.status == nil {
		return nil
	}
	if pid, err := e.writer(); err != nil {
		return diag.List{notExamined("this system does not tell who publishes into the output directory", "")}
	} else if pid != 0 {
		return nil
	}
	fix := fmt.Sprintf("remove them: xdspub doctor --fix --out %s; the next publish does so, too", e.Status.Out)
	if e.status.Change != nil {
		list = append(list, fault(codeLeftovers.Severity, e.Status.Out,
			fmt.Sprintf("a change begun at %s was interrupted", e.status.Change.Started.UTC().Format(time.RFC3339)),
			fmt.Sprintf("continue it: xdspub render --out %s SRC, or start the watch", e.Status.Out)))
	}
	left, err := publish.Leftovers(e.out)
	switch {
	case err != nil:
		list = append(list, notExamined(err.Error(), ""))
	case len(left) > 0:
		message := fmt.Sprintf("a killed process has left %s: %s", diag.Count(len(left), "file"), diag.Few(left, mostNames))
		list = append(list, fault(codeLeftovers.Severity, e.Status.Out, message, fix))
	}
	if e.status.WatchState == status.WatchKilled {
		list = append(list, fault(codeLeftovers.Severity, control.Path(e.Status.Out), "a watch was killed, and nobody publishes edits of its source tree",
			"start the watch again; xdspub doctor --fix only removes its socket"))
	}
	return list
}

// unusedFolders reports the folders of resources that are no longer published.
func unusedFolders(_ context.Context, e *examination) diag.List {
	if e.state == nil {
		return nil
	}
	folders, err := e.state.UnusedFolders()
	switch {
	case err != nil:
		return diag.List{notExamined(err.Error(), "")}
	case len(folders) == 0:
		return nil
	}
	return diag.List{fault(codeUnusedFolders.Severity, e.Status.Out,
		fmt.Sprintf("%s of resources that are no longer published: %s", diag.Count(len(folders), "empty folder"), diag.Few(folders, mostNames)),
		fmt.Sprintf("stop the Envoys and the watch, and run xdspub doctor --prune --out %s", e.Status.Out))}
}

// Fix removes what killed processes have left. It takes the lock of the output directory: the error is a
// *publish.LockedError while another process publishes.
func (r *Report) Fix() error {
	e := r.examined
	if e.status == nil {
		return nil // nobody can tell what the record needs
	}
	left, err := publish.Leftovers(e.out)
	if err != nil {
		return err
	}
	killed := e.status.WatchState == status.WatchKilled
	dir, err := publish.Open(e.out, publish.Options{}) // removes the files
	if err != nil {
		return err
	}
	if killed {
		err = control.Forget(e.out)
	}
	if err := dir.Close(); err != nil {
		return err
	}
	if killed && err == nil {
		left = append(left, control.Path(""))
	}
	stays, wrong := publish.Leftovers(e.out)
	if wrong != nil {
		return wrong
	}
	for _, name := range left {
		if !slices.Contains(stays, name) {
			r.Fixed = append(r.Fixed, name)
		}
	}
	return err
}

// InUseError means that an Envoy may watch the folders of an output directory.
type InUseError struct{ Reason string }

func (e *InUseError) Error() string {
	return fmt.Sprintf("nothing is pruned: %s; an Envoy that watches a folder would never see a new one in its place", e.Reason)
}

// Prune removes the folders of resources that are no longer published. The error is an *InUseError if an Envoy
// watches a folder of the output directory, or if nobody can tell, and a *publish.LockedError while another process
// publishes.
func (r *Report) Prune(ctx context.Context) error {
	e := r.examined
	if e.state == nil {
		return nil
	}
	dir, err := publish.Open(e.out, publish.Options{})
	if err != nil {
		return err
	}
	defer dir.Close()
	// Again, because nobody else can publish now.
	now, err := look(ctx, e.Options)
	if err != nil {
		return err
	}
	if now.damage != nil {
		return now.damage
	}
	folders, err := now.state.UnusedFolders()
	if err != nil || len(folders) == 0 {
		return err
	}
	if reason := now.mayBeWatched(folders); reason != "" {
		return &InUseError{reason}
	}
	r.Pruned, err = dir.RemoveEmpty(folders)
	return err
}

// mayBeWatched returns why an Envoy may watch the output directory; empty if none does.
func (e *examination) mayBeWatched(folders []string) string {
	down := len(e.envoys) > 0
	for _, s := range e.envoys {
		if s.report == nil || !s.report.Down {
			return fmt.Sprintf("the Envoy %s runs: stop it", s.admin)
		}
	}
	if e.status.Change != nil {
		return "a change was interrupted: publish first"
	}
	if e.processes != nil {
		for _, p := range append(e.runs, e.watchers(folders)...) {
			return fmt.Sprintf("process %d (%s) watches the output directory: stop it", p.PID, p.Name)
		}
	}
	v, err := machine.VolumeOf(e.out)
	here := err == nil && !v.Remote // else another machine may watch
	if down || here && e.processes != nil && e.processes.Whole() {
		return ""
	}
	where := "run doctor as root and outside of a container"
	if runtime.GOOS != "linux" {
		where = "this system does not tell who watches a folder"
	}
	return "it is unknown whether an Envoy watches the output directory: give --envoy-admin URL of each Envoy, which must be down; or " + where
}
