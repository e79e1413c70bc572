package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"xdspub/diag"
	"xdspub/doctor/machine"
)

// envoyAccess compares the modes of the published files with the users of the Envoys.
func envoyAccess(_ context.Context, e *examination) (list diag.List) {
	users := e.users()
	if e.state == nil {
		return nil
	}
	if len(users) == 0 {
		return e.unknownEnvoy()
	}
	for _, u := range users {
		list = append(list, e.accessOf(u)...)
	}
	return list
}

// accessOf finds what a user may not read.
func (e *examination) accessOf(u machine.User) (list diag.List) {
	a := &access{user: u, of: e.out}
	if e.envoyPath() == e.out { // Envoy opens the same path
		for dir := filepath.Dir(e.out); ; dir = filepath.Dir(dir) {
			a.look(dir, machine.Search, true)
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	a.look(e.out, machine.Search, true)
	tops := make(map[string]bool)
	for _, folder := range e.folders() {
		if top := filepath.Dir(folder); top != "." && !tops[top] {
			tops[top] = true
			a.look(filepath.Join(e.out, top), machine.Search, true)
		}
		a.look(filepath.Join(e.out, folder), machine.Search|machine.Read, true)
	}
	for _, file := range e.state.Files {
		a.look(filepath.Join(e.out, file), machine.Read, false)
	}
	if len(a.denied) > 0 {
		list = append(list, fault(diag.Error, e.Status.Out,
			fmt.Sprintf("%s can't read %s: %s", u, diag.Count(len(a.denied), "path"), diag.Few(a.denied, mostNames)),
			"add Envoy's user to the group of these files, or publish with --group GROUP; let it enter the folders above: chmod o+x"))
	}
	if a.lists > 0 {
		list = append(list, notExamined(fmt.Sprintf("%s have access control lists", diag.Count(a.lists, "path")),
			fmt.Sprintf("try it: sudo -u '#%d' cat FILE", u.ID)))
	}
	return list
}

// access collects what a user may not read.
type access struct {
	user   machine.User
	of     string
	denied []string
	lists  int // how many paths have an access control list, which the modes don't show
}

// look judges one file or folder.
func (a *access) look(path string, rights fs.FileMode, folder bool) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.IsDir() != folder {
		return // editedFile reports it
	}
	if err != nil {
		a.denied = append(a.denied, fmt.Sprintf("%s (%v)", path, err))
		return
	}
	if machine.HasACL(path) {
		a.lists++
		return
	}
	if a.user.May(info, rights) {
		return
	}
	name := path
	if below, err := filepath.Rel(a.of, path); err == nil && filepath.IsLocal(below) && below != "." {
		name = below
	}
	a.denied = append(a.denied, fmt.Sprintf("%s (%s%s)", name, info.Mode().Perm(), owners(info)))
}

// owners returns the owner and the group of a file in words.
func owners(info fs.FileInfo) string {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	group := strconv.FormatUint(uint64(s.Gid), 10)
	if known, err := user.LookupGroupId(group); err == nil {
		group = known.Name
	}
	return fmt.Sprintf(", of uid %d and group %s", s.Uid, group)
}

// replacedDirectory compares the directories that Envoys watch, and see, with the published ones.
func replacedDirectory(_ context.Context, e *examination) (list diag.List) {
	for _, p := range e.runs {
		list = append(list, e.seesOther(p)...)
	}
	if len(list) > 0 {
		return list
	}
	for _, s := range e.envoys {
		switch {
		case s.about == nil || s.report == nil:
		case s.process == nil || s.process.Hidden:
			list = append(list, notExamined(fmt.Sprintf("the process of the Envoy %s is not visible", s.admin),
				"run doctor as root, on the machine of this Envoy"))
		default:
			list = append(list, e.watchesOther(s)...)
		}
	}
	return list
}

// seesOther compares the output directory with what is at its path in the file system of a process.
func (e *examination) seesOther(p *machine.Process) diag.List {
	if e.state == nil || p.SameFiles() && e.envoyPath() == e.out {
		return nil
	}
	ours, err := os.Stat(e.out)
	if err != nil {
		return nil
	}
	theirs, err := p.Sees(e.envoyPath())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return diag.List{fault(diag.Error, e.Status.Out,
			fmt.Sprintf("process %d (%s) has no %s, where it should see the output directory", p.PID, p.Name, e.envoyPath()),
			"mount the output directory there, or publish into a new directory with the right --envoy-path")}
	case err == nil && !os.SameFile(ours, theirs):
		return diag.List{fault(diag.Error, e.Status.Out, fmt.Sprintf("process %d (%s) sees another directory at %s", p.PID, p.Name, e.envoyPath()),
			"mount the output directory there, and restart Envoy")}
	}
	return nil
}

// watchesOther finds published folders that an Envoy subscribes to and does not watch.
func (e *examination) watchesOther(s *seen) diag.List {
	var lost []string
	looked := make(map[string]bool)
	polled := make(map[string]bool)
	for _, path := range s.about.Polled {
		if file, err := filepath.Rel(e.envoyPath(), path); err == nil {
			polled[file] = true
		}
	}
	for _, row := range s.report.Subscriptions {
		folder := filepath.Dir(row.File)
		if row.Stats == "" || looked[folder] || polled[row.File] || e.polled[row.File] {
			continue
		}
		looked[folder] = true
		info, err := os.Lstat(filepath.Join(e.out, folder))
		if err != nil || !s.process.WatchesInode(machine.Inode(info)) {
			lost = append(lost, folder)
		}
	}
	if len(lost) == 0 {
		return nil
	}
	if v, err := machine.VolumeOf(e.out); err != nil || v.Overlay() {
		return diag.List{notExamined("overlay has other inodes for inotify than for stat", "")}
	}
	message := fmt.Sprintf("the Envoy %s (process %d) does not watch %s: somebody has replaced %s since the start of Envoy, and Envoy misses "+
		"each update there", s.admin, s.process.PID, diag.Few(lost, mostNames), diag.Count(len(lost), "folder"))
	return diag.List{fault(diag.Error, e.Status.Out, message, "restart this Envoy; never remove or replace folders of the output directory")}
}
