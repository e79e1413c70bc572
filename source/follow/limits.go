package follow

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"xdspub/diag"
	"xdspub/xds"
)

// directories reports directories that subscriptions of several types watch.
func (f *follower) directories() {
	watching := make(map[string][]subscriber)
	for _, to := range f.order {
		for _, s := range to.subscribers {
			dir := f.resolve(cmp.Or(s.watched, filepath.Dir(to.path)))
			watching[dir] = append(watching[dir], s)
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(watching)) {
		list := watching[dir]
		var types []string
		second := -1
		for i, s := range list {
			if !slices.Contains(types, s.Target.API) {
				types = append(types, s.Target.API)
			}
			if len(types) == 2 && second < 0 {
				second = i
			}
		}
		if second < 0 {
			continue
		}
		f.report(list[second].Resource, problem{
			code:    codeSharedDirectory,
			path:    sourcePath(list[second]),
			message: fmt.Sprintf("%s watch the same directory: Envoy may read their changes in any order", strings.Join(types, ", ")),
			help:    "give each file its own directory",
			related: []diag.Related{{Position: list[0].Origin.Range(sourcePath(list[0])).Position, Message: list[0].Target.API + " watches it too"}},
		})
	}
}

// inotifyInstances is the default number of inotify instances per user in Linux. From inotifyMany on, a
// change can reach that number, because old and new subscriptions count together.
const (
	inotifyInstances = 128
	inotifyMany      = 100
)

// inotify counts the inotify instances that Envoy needs.
func (f *follower) inotify() {
	n := 2 * f.certificates
	for _, to := range f.order {
		for _, s := range to.subscribers {
			if s.Source.GetPathConfigSource().GetPollInterval() == nil { // Envoy polls the file instead
				n++
			}
		}
	}
	if n < inotifyMany {
		return
	}
	d := f.result.Bootstrap.Diagnostic(codeInotifyLimit.Name, xds.Path("dynamic_resources"),
		fmt.Sprintf("the configuration needs %d inotify instances, and Linux gives Envoy's user %d by default: one too many aborts Envoy", n, inotifyInstances))
	d.Help = "raise the sysctl fs.inotify.max_user_instances, or write endpoints and routes inline"
	if n <= inotifyInstances {
		d.Severity = diag.Warning
	}
	f.add(d)
}
