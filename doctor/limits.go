package doctor

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"xdspub/diag"
	"xdspub/doctor/machine"
)

// unknownEnvoy returns the finding that no Envoy, and no user of an Envoy, is known.
func (e *examination) unknownEnvoy() diag.List {
	if e.state == nil {
		return nil // nothing is published, so no Envoy reads
	}
	return diag.List{notExamined("no process of an Envoy that reads the output directory is visible",
		"run doctor as root, on the machine or in the container of Envoy, or give --envoy-user USER")}
}

// inotifyInstances compares the instances that the Envoys need with the rest of their user's instances.
func inotifyInstances(_ context.Context, e *examination) (list diag.List) {
	limit, users := machine.System.Instances(), e.users()
	if limit.Value == 0 || e.processes == nil {
		return diag.List{notExamined("this system does not tell", "")}
	}
	if e.InotifyBudget > limit.Value {
		list = append(list, fault(diag.Warning, "",
			fmt.Sprintf("--inotify-budget %d permits more inotify instances than the kernel: %s is %d", e.InotifyBudget, limit.Sysctl, limit.Value),
			fmt.Sprintf("raise the limit: sysctl %s=%d; or lower --inotify-budget", limit.Sysctl, 2*e.InotifyBudget)))
	}
	if len(users) == 0 {
		return append(list, e.unknownEnvoy()...)
	}
	for _, u := range users {
		list = append(list, e.instancesOf(u, limit)...)
	}
	return list
}

// instancesOf compares the need of the Envoys of one user with a limit.
func (e *examination) instancesOf(u machine.User, limit machine.Limit) diag.List {
	taken, _, hidden := e.processes.Inotify(u.ID)
	envoys, restarts := 0, false
	for _, p := range e.runs {
		if p.User.ID == u.ID {
			envoys, taken = envoys+1, taken-p.Instances
		}
	}
	for _, s := range e.envoys {
		restarts = restarts || s.about != nil && !s.about.Once
	}
	envoys = max(envoys, 1)
	need, left := envoys*e.instances, max(limit.Value-taken, 0)
	help := fmt.Sprintf("raise the limit: sysctl %s=%d, and write it into /etc/sysctl.d", limit.Sysctl, 2*max(limit.Value, need+taken))
	leaves := fmt.Sprintf("%s is %d, and other processes of %s hold %d", limit.Sysctl, limit.Value, u, taken)
	switch {
	case need > left:
		return diag.List{fault(diag.Error, "", fmt.Sprintf("%s that read%s the output directory need%[2]s %d inotify instances, and only %d are left: "+
			"an Envoy aborts at its start or at the next change; %s", diag.Count(envoys, "Envoy"), third(envoys), need, left, leaves), help)}
	case restarts && need+e.instances > left:
		return diag.List{fault(diag.Warning, "", fmt.Sprintf("a hot restart of Envoy needs %d inotify instances, and only %d are left: "+
			"the new process aborts; %s", need+e.instances, left, leaves), help)}
	case hidden:
		return diag.List{notExamined(fmt.Sprintf("the descriptors of some processes of %s are not visible", u), "run doctor as root")}
	}
	return nil
}

// third returns the ending of a verb after a number of things.
func third(n int) string {
	if n == 1 {
		return "s"
	}
	return ""
}

// mostFolders bounds the folders of a source tree that are counted.
const mostFolders = 1_000_000

// inotifyWatches compares the watches that Envoys and a watch of the source tree need with those that are left.
func inotifyWatches(_ context.Context, e *examination) (list diag.List) {
	limit := machine.System.Watches()
	if limit.Value == 0 || e.processes == nil {
		return diag.List{notExamined("this system does not tell", "")}
	}
	needs := make(map[int]int) // by user: what is needed and not taken yet
	who := make(map[int]machine.User)
	for _, u := range e.users() {
		who[u.ID] = u
		if len(e.runs) == 0 {
			needs[u.ID] += e.instances
		}
	}
	if self := e.processes.Of(os.Getpid()); self != nil && e.Source != "" && (e.status == nil || e.status.Watch == nil) {
		who[self.User.ID] = self.User // who mostly runs the watch, too
		needs[self.User.ID] += countFolders(e.Source)
	}
	for id, u := range who {
		if _, taken, _ := e.processes.Inotify(id); taken+needs[id] > limit.Value*9/10 {
			list = append(list, fault(codeInotifyWatches.Severity, "",
				fmt.Sprintf("%s has %d inotify watches and needs %d more, and %s is %d", u, taken, needs[id], limit.Sysctl, limit.Value),
				fmt.Sprintf("raise the limit: sysctl %s=%d", limit.Sysctl, 2*max(limit.Value, taken+needs[id]))))
		}
	}
	return list
}

// countFolders returns the number of folders of a source tree.
func countFolders(source string) (n int) {
	_ = filepath.WalkDir(source, func(_ string, d fs.DirEntry, err error) error {
		switch {
		case n == mostFolders:
			return fs.SkipAll
		case err == nil && d.IsDir():
			n++
		}
		return nil // what can't be read takes no watch
	})
	return n
}

// descriptors finds processes near their limit of descriptors.
func descriptors(_ context.Context, e *examination) (list diag.List) {
	if e.processes == nil {
		return diag.List{notExamined("this system does not tell", "")}
	}
	all := slices.Clone(e.runs)
	if e.status != nil && e.status.Watch != nil {
		if p := e.processes.Of(e.status.Watch.PID); p != nil && !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	for _, p := range all {
		if p.MostDescriptors > 0 && p.Descriptors >= p.MostDescriptors*8/10 {
			list = append(list, fault(codeDescriptors.Severity, "",
				fmt.Sprintf("process %d (%s) has opened %d of %d descriptors", p.PID, p.Name, p.Descriptors, p.MostDescriptors),
				"raise LimitNOFILE= in its unit of systemd, or ulimit -n, and restart it"))
		}
	}
	return list
}
