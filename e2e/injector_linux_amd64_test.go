package e2e

import (
	"bytes"
	endian "encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// injectorVariable is the environment variable that makes this program run its arguments as a program whose
// reads fail, or whose clock somebody sets, instead of testing. Its value is an injection.
const injectorVariable = "XDSPUB_INJECTOR"

// injection says which reads of a program fail, and how its clock goes.
type injection struct {
	// Below are the folders whose files are meant.
	Below []string
	// Fault is the path of a file with the fault. The injector reads it at each read of the program. If there
	// is no such file, no read fails.
	Fault string
	// Log is the path of a file that gets a line for each read of the program: a seenRead.
	Log string
	// Clock is the path of a file with a duration: the clock of the program is ahead by that. Empty for a
	// clock that nobody sets.
	Clock string
}

// seenRead is a system call that reads.
type seenRead struct {
	Call, Path string
	// Nth counts the calls of the same name for the same path, from 1.
	Nth    int
	Failed bool
}

// fault makes a call fail with EIO from its n-th on.
type fault struct {
	Call, Path string
	From       int
}

func init() {
	text := os.Getenv(injectorVariable)
	if text == "" {
		return
	}
	exit, err := inject(text, os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "injector:", err)
		exit = 125
	}
	os.Exit(exit)
}

// injector traces the threads of one program.
type injector struct {
	injection
	log   *os.File
	count map[[2]string]int
	fails map[int]bool   // the threads in a call that fails
	asks  map[int]uint64 // where the threads want the time of the day
}

// inject runs a program to its end, and returns its exit status.
func inject(text string, program []string) (int, error) {
	in := &injector{count: make(map[[2]string]int), fails: make(map[int]bool), asks: make(map[int]uint64)}
	err := json.Unmarshal([]byte(text), &in.injection)
	if err != nil {
		return 0, err
	}
	if in.log, err = os.Create(in.Log); err != nil {
		return 0, err
	}
	os.Unsetenv(injectorVariable)
	runtime.LockOSThread() // only the thread that traces a program may ask about it
	p, err := os.StartProcess(program[0], program, &os.ProcAttr{
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, Sys: &syscall.SysProcAttr{Ptrace: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return 0, err
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	go func() {
		for s := range signals {
			_ = p.Signal(s)
		}
	}()
	return in.trace(p.Pid)
}

// trace follows all threads of a process to its end, and returns its exit status.
func (in *injector) trace(pid int) (int, error) {
	var status unix.WaitStatus
	if _, err := unix.Wait4(pid, &status, 0, nil); err != nil || !status.Stopped() {
		return 0, fmt.Errorf("start: %v, %v", err, status)
	}
	if err := unix.PtraceSetOptions(pid, unix.PTRACE_O_TRACESYSGOOD|unix.PTRACE_O_TRACECLONE|unix.PTRACE_O_EXITKILL); err != nil {
		return 0, err
	}
	if in.Clock != "" {
		if err := hideFastClock(pid); err != nil {
			return 0, err
		}
	}
	known := map[int]bool{pid: true}
	for thread, of := pid, 0; ; {
		// A thread may have been killed meanwhile: then Wait4 says so.
		if err := unix.PtraceSyscall(thread, of); err != nil && err != unix.ESRCH {
			return 0, err
		}
		for {
			var err error
			if thread, err = unix.Wait4(-1, &status, unix.WALL, nil); err == unix.EINTR {
				continue
			} else if err != nil {
				return 0, err
			}
			if status.Stopped() {
				break
			}
			if thread == pid && status.Signaled() {
				return 128 + int(status.Signal()), nil
			}
			if thread == pid {
				return status.ExitStatus(), nil
			}
		}
		of = 0
		switch s := status.StopSignal(); {
		case s == unix.SIGTRAP|0x80:
			if err := in.stopped(thread); err != nil && err != unix.ESRCH {
				return 0, err
			}
		case s == unix.SIGTRAP: // a new thread
		case s == unix.SIGSTOP && !known[thread]:
		default:
			of = int(s)
		}
		known[thread] = true
	}
}

// syscallInfo is struct ptrace_syscall_info of the kernel.
type syscallInfo struct {
	op   uint8
	_    [3]uint8
	_    uint32
	_, _ uint64
	nr   uint64
	args [6]uint64
	_    uint64
}

// stopped looks at a thread that enters or leaves a system call.
func (in *injector) stopped(thread int) error {
	var info syscallInfo
	if _, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_GET_SYSCALL_INFO, uintptr(thread), unsafe.Sizeof(info), uintptr(unsafe.Pointer(&info)), 0, 0); errno != 0 {
		return errno
	}
	switch {
	case info.op == unix.PTRACE_SYSCALL_INFO_ENTRY && in.entersFailing(thread, &info):
		in.fails[thread] = true
		return setRegisters(thread, func(r *unix.PtraceRegs) { r.Orig_rax = ^uint64(0) }) // no call is carried out
	case info.op == unix.PTRACE_SYSCALL_INFO_EXIT && in.fails[thread]:
		delete(in.fails, thread)
		return setRegisters(thread, func(r *unix.PtraceRegs) { r.Rax = ^uint64(unix.EIO) + 1 })
	case info.op == unix.PTRACE_SYSCALL_INFO_ENTRY && in.Clock != "" && info.nr == unix.SYS_CLOCK_GETTIME && info.args[0] == unix.CLOCK_REALTIME:
		in.asks[thread] = info.args[1]
	case info.op == unix.PTRACE_SYSCALL_INFO_EXIT && in.asks[thread] != 0:
		at := in.asks[thread]
		delete(in.asks, thread)
		return in.setClock(thread, uintptr(at))
	}
	return nil
}

// setClock moves the time that a thread has got.
func (in *injector) setClock(thread int, at uintptr) error {
	text, err := os.ReadFile(in.Clock)
	if err != nil {
		return err
	}
	ahead, err := time.ParseDuration(string(text))
	if err != nil {
		return err
	}
	var seconds [8]byte
	if _, err := unix.PtracePeekData(thread, at, seconds[:]); err != nil {
		return err
	}
	endian.NativeEndian.PutUint64(seconds[:], endian.NativeEndian.Uint64(seconds[:])+uint64(ahead/time.Second))
	_, err = unix.PtracePokeData(thread, at, seconds[:])
	return err
}

// The entries of the auxiliary vector of a process that hideFastClock looks for and writes.
const (
	auxEnd      = 0
	auxIgnored  = 1
	auxFastCode = 33 // the code by which a process reads clocks without a system call
)

// hideFastClock has a process that has just begun read clocks by system calls.
func hideFastClock(pid int) error {
	var r unix.PtraceRegs
	if err := unix.PtraceGetRegs(pid, &r); err != nil {
		return err
	}
	word := func(at uint64) uint64 {
		var b [8]byte
		_, _ = unix.PtracePeekData(pid, uintptr(at), b[:]) // 0 ends each list
		return endian.NativeEndian.Uint64(b[:])
	}
	at := r.Rsp + 8*(word(r.Rsp)+2) // behind the arguments
	for ; word(at) != 0; at += 8 {  // the environment
	}
	for at += 8; word(at) != auxEnd; at += 16 {
		if word(at) == auxFastCode {
			_, err := unix.PtracePokeData(pid, uintptr(at), endian.NativeEndian.AppendUint64(nil, auxIgnored))
			return err
		}
	}
	return nil
}

func setRegisters(thread int, set func(*unix.PtraceRegs)) error {
	var r unix.PtraceRegs
	if err := unix.PtraceGetRegs(thread, &r); err != nil {
		return err
	}
	set(&r)
	return unix.PtraceSetRegs(thread, &r)
}

// entersFailing reports whether a thread enters a call that fails. It logs what reads.
func (in *injector) entersFailing(thread int, info *syscallInfo) bool {
	name, path := readOf(thread, info)
	if !slices.ContainsFunc(in.Below, func(dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }) {
		return false
	}
	in.count[[2]string{name, path}]++
	is := seenRead{Call: name, Path: path, Nth: in.count[[2]string{name, path}]}
	var f fault
	if text, err := os.ReadFile(in.Fault); err == nil && json.Unmarshal(text, &f) == nil {
		is.Failed = f.Call == name && f.Path == path && is.Nth >= f.From
	}
	line, _ := json.Marshal(is)
	_, _ = in.log.Write(append(line, '\n'))
	return is.Failed
}

// readOf returns the name and the path of a call that reads a file, a folder or a link; no path for another call.
func readOf(thread int, info *syscallInfo) (name, path string) {
	switch info.nr {
	case unix.SYS_READ:
		return "read", opened(thread, info.args[0])
	case unix.SYS_PREAD64:
		return "pread64", opened(thread, info.args[0])
	case unix.SYS_GETDENTS64:
		return "getdents64", opened(thread, info.args[0])
	case unix.SYS_FSTAT:
		return "fstat", opened(thread, info.args[0])
	case unix.SYS_NEWFSTATAT:
		return "newfstatat", named(thread, info)
	case unix.SYS_STATX:
		return "statx", named(thread, info)
	case unix.SYS_READLINKAT:
		return "readlinkat", named(thread, info)
	case unix.SYS_OPENAT:
		if info.args[2]&unix.O_ACCMODE == unix.O_RDONLY {
			return "openat", named(thread, info)
		}
	}
	return "", ""
}

// opened returns the path of a descriptor.
func opened(thread int, fd uint64) string {
	path, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", thread, int32(fd)))
	return path
}

// named returns the path that a call names by a descriptor and a name.
func named(thread int, info *syscallInfo) string {
	name := textAt(thread, uintptr(info.args[1]))
	switch {
	case filepath.IsAbs(name):
		return filepath.Clean(name)
	case int32(info.args[0]) == unix.AT_FDCWD:
		at, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", thread))
		return filepath.Join(at, name)
	}
	return filepath.Join(opened(thread, info.args[0]), name)
}

// textAt returns a text in the memory of a thread.
func textAt(thread int, at uintptr) string {
	text := make([]byte, unix.PathMax)
	local, remote := []unix.Iovec{{Base: &text[0], Len: unix.PathMax}}, []unix.RemoteIovec{{Base: at, Len: unix.PathMax}}
	n, _ := unix.ProcessVMReadv(thread, local, remote, 0) // up to the end of what is mapped
	end := bytes.IndexByte(text[:max(n, 0)], 0)
	if end < 0 {
		return ""
	}
	return string(text[:end])
}
