package doctor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"xdspub/diag"
	"xdspub/doctor/machine"
	"xdspub/render/publish"
	"xdspub/watch/control"
)

// damagedOutput reports why the output directory can't be read.
func damagedOutput(_ context.Context, e *examination) diag.List {
	if e.damage == nil {
		return nil
	}
	return diag.List{fault(diag.Error, "", diag.ClipLine(e.damage.Error(), diag.MaxText), "the other checks of the output directory wait for that")}
}

// noEvents finds file systems on which a change is not noticed.
func noEvents(_ context.Context, e *examination) (list diag.List) {
	if v, err := machine.VolumeOf(e.out); err == nil {
		list = append(list, e.outputEvents(v)...)
	}
	if e.Source == "" || e.Polled || e.status != nil && e.status.Watch != nil && e.status.Watch.Notices == control.ByPolling {
		return list
	}
	v, err := machine.VolumeOf(e.Source)
	switch {
	case err != nil:
		list = append(list, notExamined(err.Error(), ""))
	case v.Remote:
		list = append(list, fault(codeNoEvents.Severity, e.Source,
			fmt.Sprintf("the source tree is on %s, which reports no changes by other machines: a watch notices them at its next rescan", v.Kind),
			"give --poll 5s to xdspub watch"))
	}
	return list
}

// outputEvents judges the file system of the output directory.
func (e *examination) outputEvents(v machine.Volume) diag.List {
	here := len(e.runs) > 0
	for _, p := range e.runs {
		here = here && p.SameFiles()
	}
	switch {
	case here: // events of this machine and mount reach Envoy
		return nil
	case v.Remote && len(e.polled) == 0:
		return diag.List{fault(codeNoEvents.Severity, e.Status.Out,
			fmt.Sprintf("the output directory is on %s, which reports no changes to Envoys on other machines: they never see an update", v.Kind),
			"publish into a local directory; or give --poll-interval 2s to xdspub watch or render, and to xdspub bootstrap envoy")}
	case v.Overlay():
		return diag.List{fault(diag.Info, e.Status.Out,
			"the output directory is in the own layer of a container: no other container sees it, and it ends with the container",
			"mount a volume, such as an emptyDir, into the containers of xdspub and of Envoy")}
	}
	return nil
}

// unwatchedSource reports that a running watch gets no events of a part of the source tree.
func unwatchedSource(_ context.Context, e *examination) diag.List {
	if e.status == nil || e.status.Watch == nil || e.status.Watch.Notices != control.ByPart {
		return nil
	}
	return diag.List{fault(codeUnwatchedSource.Severity, e.status.Watch.Source,
		"the watch gets no events of a part of the source tree, and finds changes there only at a rescan",
		"the event watch-partial of its log names the folder and the reason: remove the reason, or give --poll 5s")}
}

// splitOutput finds folders and files that no rename reaches.
func splitOutput(_ context.Context, e *examination) diag.List {
	if e.state == nil {
		return nil
	}
	apart, err := publish.Apart(e.out, e.state.Files, mostNames+1)
	switch {
	case err != nil:
		return diag.List{notExamined(err.Error(), "")}
	case len(apart) == 0:
		return nil
	}
	return diag.List{fault(diag.Error, e.Status.Out,
		fmt.Sprintf("not on the file system of OUT/.xdspub/stage: %s; no rename reaches there, so xdspub can't publish these files", diag.Few(apart, mostNames)),
		"mount the whole output directory, and nothing inside it")}
}

// outputSpace compares the free space with the size of what is published.
func outputSpace(_ context.Context, e *examination) diag.List {
	v, err := machine.VolumeOf(e.out)
	if err != nil {
		return diag.List{notExamined(err.Error(), "")}
	}
	const least, fewest = 1 << 20, 16
	need, inodes := uint64(least), uint64(fewest)
	if e.state != nil {
		for _, file := range e.state.Files {
			if info, err := os.Lstat(filepath.Join(e.out, file)); err == nil {
				need += 2 * uint64(info.Size()) // the new bytes, and the old ones for a rollback
			}
		}
		inodes += 2 * uint64(len(e.state.Files))
	}
	where := func(severity diag.Severity, message string) diag.List {
		return diag.List{fault(severity, e.Status.Out, message, "free space or inodes, or publish into a directory on another file system")}
	}
	switch {
	case v.ReadOnly:
		return diag.List{fault(diag.Error, e.Status.Out, "the file system is read-only: nothing can be published",
			"mount it read-write; only Envoy's mount may be read-only")}
	case v.Free < least:
		return where(diag.Error, fmt.Sprintf("the file system is full: %d bytes are free", v.Free))
	case v.Limited && v.Inodes < fewest:
		return where(diag.Error, fmt.Sprintf("the file system has no inodes left: %d are free", v.Inodes))
	case v.Free < need:
		return where(diag.Warning, fmt.Sprintf("the file system is nearly full: %d bytes are free, and a change of all files takes %d", v.Free, need))
	case v.Limited && v.Inodes < inodes:
		return where(diag.Warning, fmt.Sprintf("the file system has few inodes left: %d are free, and a change of all files takes %d", v.Inodes, inodes))
	}
	return nil
}

// editedFile reports published files that are not as published.
func editedFile(_ context.Context, e *examination) (list diag.List) {
	if e.status == nil {
		return nil
	}
	again := fmt.Sprintf("publish the files again: xdspub render --out %s SRC; a running watch does so by itself within its --rescan", e.Status.Out)
	if n := len(e.status.Drifted); n > 0 {
		list = append(list, fault(diag.Error, e.Status.Out, fmt.Sprintf("%s edited, replaced or removed by hand: %s; Envoy does not notice, "+
			"and reads the edit at its next start", diag.Count(n, "file"), diag.Few(e.status.Drifted, mostNames)), again))
	}
	if n := len(e.status.Missing); n > 0 {
		list = append(list, fault(diag.Error, e.Status.Out, fmt.Sprintf("%s missing: %s; an Envoy that starts now rejects "+
			"the resources that refer to them", diag.Count(n, "file"), diag.Few(e.status.Missing, mostNames)), again))
	}
	if e.status.Incomplete {
		list = append(list, fault(diag.Error, e.Status.Out, "the list of published files was removed or damaged, so edits by hand can't be found", again))
	}
	return list
}

// certificates returns the findings about the dates of published certificates, and of those that the running watch
// has checked.
func certificates(_ context.Context, e *examination) diag.List {
	if e.status == nil {
		return nil
	}
	return slices.Concat(e.status.Certificates.OutOfDate, e.status.Certificates.ExpireSoon)
}
