// Package machine reads what Linux tells about processes, limits and file systems. It changes nothing. Other users
// choose the names and descriptors of their processes, so each read has a bound.
//
//	list, err := machine.System.Scan(ctx)
//	for _, p := range list.Watching(inode) { … }
package machine

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"xdspub/diag"
)

// Proc is the path of a proc file system.
type Proc string

// System is the proc file system of this machine.
const System Proc = "/proc"

// Bounds of a Scan.
const (
	maxProcesses   = 1 << 16
	maxDescriptors = 1 << 20 // of all processes together
	maxText        = 64 << 10
	maxWatches     = 16 << 20 // bytes of a file that lists the watches of an inotify instance
	maxSockets     = 16 << 20 // bytes of a file that lists sockets
)

// Process is a process of this machine.
type Process struct {
	PID  int
	Name string // as the process calls itself, up to 15 bytes
	User User
	// Started is the time of the start, to the second.
	Started time.Time
	// Hidden means that this process may not see the descriptors of the process. The later fields are then zero.
	Hidden bool
	// Descriptors is the number of open descriptors, and MostDescriptors the soft limit; 0 if there is none.
	Descriptors, MostDescriptors int
	// Instances counts inotify instances, and Watches their watches.
	Instances, Watches int

	watched map[uint64]bool // inodes
	sockets map[uint64]bool // inodes
	proc    Proc
}

// WatchesInode reports whether an inotify instance of the process watches an inode. It compares no devices, because
// inotify and stat have different devices for a file on btrfs.
func (p *Process) WatchesInode(inode uint64) bool { return p.watched[inode] }

// Processes are the processes of a Scan.
type Processes struct {
	List []*Process
	// Cut means that the machine has more processes or descriptors than Scan reads.
	Cut  bool
	proc Proc
}

// ErrNoProc means that the system has no proc file system.
var ErrNoProc = errors.New("this system has no /proc")

// Scan reads all processes. A process that ends meanwhile is left out.
func (p Proc) Scan(ctx context.Context) (*Processes, error) {
	boot, err := p.bootTime()
	if err != nil {
		return nil, err
	}
	folder, err := os.Open(string(p))
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	all := &Processes{proc: p}
	names, err := folder.Readdirnames(maxProcesses + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(names) > maxProcesses {
		names, all.Cut = names[:maxProcesses], true
	}
	left := maxDescriptors
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid <= 0 {
			continue
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if process, ok := p.process(pid, boot, &left); ok {
			all.List = append(all.List, process)
		}
	}
	all.Cut = all.Cut || left <= 0
	slices.SortFunc(all.List, func(a, b *Process) int { return a.PID - b.PID })
	return all, nil
}

// Whole reports whether the Scan saw the descriptors of all processes of the machine: none is Hidden, nothing was
// cut, and this process is in the first namespace of processes.
func (l *Processes) Whole() bool {
	const first = "pid:[4026531836]" // a constant of the kernel
	is, err := os.Readlink(filepath.Join(string(l.proc), "self/ns/pid"))
	return err == nil && is == first && !l.Cut && !slices.ContainsFunc(l.List, func(p *Process) bool { return p.Hidden })
}

// Watching returns the processes that watch an inode.
func (l *Processes) Watching(inode uint64) (list []*Process) {
	for _, p := range l.List {
		if p.WatchesInode(inode) {
			list = append(list, p)
		}
	}
	return list
}

// Of returns the process with an ID; nil if there is none.
func (l *Processes) Of(pid int) *Process {
	i := slices.IndexFunc(l.List, func(p *Process) bool { return p.PID == pid })
	if i < 0 {
		return nil
	}
	return l.List[i]
}

// Inotify counts the inotify instances and watches of all processes of a user. hidden reports whether the numbers may
// be too low, because a process of the user is Hidden.
func (l *Processes) Inotify(user int) (instances, watches int, hidden bool) {
	hidden = l.Cut
	for _, p := range l.List {
		if p.User.ID == user {
			instances, watches, hidden = instances+p.Instances, watches+p.Watches, hidden || p.Hidden
		}
	}
	return instances, watches, hidden
}

// process reads one process. left is the number of descriptors that may still be read.
func (p Proc) process(pid int, boot time.Time, left *int) (*Process, bool) {
	is := &Process{PID: pid, proc: p, watched: make(map[uint64]bool), sockets: make(map[uint64]bool)}
	if !is.readStatus() || !is.readStart(boot) {
		return nil, false
	}
	is.readLimit()
	switch names, err := is.names("fd", *left); {
	case errors.Is(err, os.ErrNotExist):
		return nil, false
	case err != nil:
		is.Hidden = true
	default:
		*left -= len(names)
		for _, fd := range names {
			is.readDescriptor(fd)
		}
	}
	return is, true
}

// path returns the path of a file about the process.
func (p *Process) path(name string) string {
	return filepath.Join(string(p.proc), strconv.Itoa(p.PID), name)
}

func (p *Process) names(folder string, most int) ([]string, error) {
	f, err := os.Open(p.path(folder))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(max(most, 1))
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return names, err
}

// readDescriptor counts a descriptor, and notes inotify instances and sockets.
func (p *Process) readDescriptor(fd string) {
	p.Descriptors++
	target, err := os.Readlink(p.path("fd/" + fd))
	switch {
	case errors.Is(err, os.ErrPermission):
		p.Hidden = true
	case err != nil:
	case target == "anon_inode:inotify" || target == "inotify":
		p.Instances++
		p.readWatches(fd)
	default:
		if text, ok := strings.CutPrefix(target, "socket:["); ok {
			if inode, err := strconv.ParseUint(strings.TrimSuffix(text, "]"), 10, 64); err == nil {
				p.sockets[inode] = true
			}
		}
	}
}

// readWatches notes the inodes that an inotify instance watches, from lines such as: inotify wd:1 ino:9e7e sdev:…
func (p *Process) readWatches(fd string) {
	data, err := readFile(p.path("fdinfo/"+fd), maxWatches)
	if err != nil {
		p.Hidden = true
		return
	}
	for line := range bytes.Lines(data) {
		words := strings.Fields(string(line))
		if len(words) < 3 || words[0] != "inotify" {
			continue
		}
		p.Watches++
		if inode, err := strconv.ParseUint(strings.TrimPrefix(words[2], "ino:"), 16, 64); err == nil {
			p.watched[inode] = true
		}
	}
}

// readStatus reads the name and the user of the process.
func (p *Process) readStatus() bool {
	data, err := readFile(p.path("status"), maxText)
	if err != nil {
		return false
	}
	lines := fields(data)
	p.Name = diag.Clip(strings.Join(lines["Name"], " "), 64)
	uid, gid := numbers(lines["Uid"]), numbers(lines["Gid"])
	if len(uid) < 4 || len(gid) < 4 {
		return false
	}
	p.User = User{ID: uid[1], Groups: append([]int{gid[3]}, numbers(lines["Groups"])...)}
	if capabilities := lines["CapEff"]; len(capabilities) == 1 {
		has, err := strconv.ParseUint(capabilities[0], 16, 64)
		const overrideAccess, readAll = 1 << 1, 1 << 2 // CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
		p.User.Privileged = err == nil && has&(overrideAccess|readAll) != 0
	}
	return true
}

// readStart reads when the process started.
func (p *Process) readStart(boot time.Time) bool {
	data, err := readFile(p.path("stat"), maxText)
	if err != nil {
		return false
	}
	const start, perSecond = 19, 100 // the field starttime after the name; the kernel counts hundredths for programs
	_, rest, _ := strings.Cut(string(data[bytes.LastIndexByte(data, ')')+1:]), " ")
	words := strings.Fields(rest)
	if len(words) <= start {
		return false
	}
	ticks, err := strconv.ParseInt(words[start], 10, 64)
	p.Started = boot.Add(time.Duration(ticks) * time.Second / perSecond)
	return err == nil
}

// readLimit reads the limit of descriptors.
func (p *Process) readLimit() {
	data, err := readFile(p.path("limits"), maxText)
	if err != nil {
		return
	}
	for line := range bytes.Lines(data) {
		if words, ok := strings.CutPrefix(string(line), "Max open files"); ok {
			if soft := strings.Fields(words); len(soft) > 0 {
				p.MostDescriptors, _ = strconv.Atoi(soft[0])
			}
		}
	}
}

// bootTime returns when the machine started, by its clock.
func (p Proc) bootTime() (time.Time, error) {
	f, err := os.Open(filepath.Join(string(p), "stat"))
	if errors.Is(err, os.ErrNotExist) {
		return time.Time{}, ErrNoProc
	}
	if err != nil {
		return time.Time{}, err
	}
	defer f.Close()
	lines := bufio.NewScanner(io.LimitReader(f, 1<<20)) // a line for each interrupt may be long
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "btime "); ok {
			seconds, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
			return time.Unix(seconds, 0), err
		}
	}
	return time.Time{}, fmt.Errorf("%s: no btime", f.Name())
}

// readFile reads up to most bytes of a file.
func readFile(name string, most int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}

// fields returns the words of each line such as "Uid: 0 0", by the name before the colon.
func fields(data []byte) map[string][]string {
	lines := make(map[string][]string)
	for line := range bytes.Lines(data) {
		if name, rest, ok := strings.Cut(string(line), ":"); ok {
			lines[name] = strings.Fields(rest)
		}
	}
	return lines
}

func numbers(words []string) (list []int) {
	for _, word := range words {
		if n, err := strconv.Atoi(word); err == nil {
			list = append(list, n)
		}
	}
	return list
}
