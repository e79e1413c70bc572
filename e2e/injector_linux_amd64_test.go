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
	// Below are the folders whose reads may fail, and are logged.
	Below []string
	// Fault is the path of a file with the fault. The injector reads it at each read of the program. If there
	// is no such file, no read fails.
	Fault string
	// Log is the path of a file that gets a line for each read of the program: a seenRead.
	Log string
	// Clock is the path of a file with a duration, by which the clock of the program is ahead. If Clock is empty,
	// the program has the clock of the machine.
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

// injector traces the threads of one program and of the processes that the program starts. A filter in the kernel
// stops a thread only for a call that the injector may answer: other calls run at full speed.
type injector struct {
	injection
	log   *os.File
	count map[[2]string]int
	own   map[int]bool // the known threads: whether they belong to the program itself
}

// inject runs a program to its end, and returns its exit status.
func inject(text string, program []string) (int, error) {
	in := &injector{count: make(map[[2]string]int), own: make(map[int]bool)}
	err := json.Unmarshal([]byte(text), &in.injection)
	if err != nil {
		return 0, err
	}
	if in.log, err = os.Create(in.Log); err != nil {
		return 0, err
	}
	os.Unsetenv(injectorVariable)
	runtime.LockOSThread() // the kernel accepts ptrace only from the thread that started the program
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
	const follow = unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACEFORK | unix.PTRACE_O_TRACEVFORK
	if err := unix.PtraceSetOptions(pid, follow|unix.PTRACE_O_TRACESECCOMP|unix.PTRACE_O_EXITKILL); err != nil {
		return 0, err
	}
	if in.Clock != "" {
		if err := hideFastClock(pid); err != nil {
			return 0, err
		}
	}
	if err := in.filterCalls(pid); err != nil {
		return 0, err
	}
	in.own[pid] = true
	for thread, of := pid, 0; ; {
		// If the thread was killed meanwhile, Wait4 reports its end.
		if err := unix.PtraceCont(thread, of); err != nil && err != unix.ESRCH {
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
		_, known := in.own[thread]
		if !known {
			in.own[thread] = processOf(thread) == pid
		}
		of = 0
		switch s := status.StopSignal(); {
		case status.TrapCause() == unix.PTRACE_EVENT_SECCOMP:
			if err := in.stopped(thread); err != nil && err != unix.ESRCH {
				return 0, err
			}
		case s == unix.SIGTRAP: // a new thread or process
		case s == unix.SIGSTOP && !known:
		default:
			of = int(s)
		}
	}
}

// processOf returns the process of a thread, or 0 if the thread has ended.
func processOf(thread int) (pid int) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", thread))
	_, after, _ := strings.Cut(string(text), "\nTgid:")
	_, _ = fmt.Sscan(after, &pid)
	return pid
}

// filterCalls makes the kernel stop a new process, and the threads and processes that it starts, at calls that read
// and, if Clock is set, at calls that ask for the time of the day.
func (in *injector) filterCalls(pid int) error {
	const number, firstArgument = 0, 16 // in struct seccomp_data
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	ifNot := func(value uint32, skip uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: value, Jf: skip}
	}
	give := func(answer uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: answer}
	}
	filter := []unix.SockFilter{load(number)}
	for _, call := range readCalls {
		filter = append(filter, ifNot(call, 1), give(unix.SECCOMP_RET_TRACE))
	}
	if in.Clock != "" {
		filter = append(filter, ifNot(unix.SYS_CLOCK_GETTIME, 3), load(firstArgument), ifNot(unix.CLOCK_REALTIME, 1), give(unix.SECCOMP_RET_TRACE))
	}
	filter = append(filter, give(unix.SECCOMP_RET_ALLOW))

	var r unix.PtraceRegs
	if err := unix.PtraceGetRegs(pid, &r); err != nil {
		return err
	}
	// The filter and its head lie below the stack, where the program may overwrite them later.
	var list bytes.Buffer
	if err := endian.Write(&list, endian.NativeEndian, filter); err != nil {
		return err
	}
	at := r.Rsp - 4096
	head := endian.NativeEndian.AppendUint64(nil, uint64(len(filter)))
	head = endian.NativeEndian.AppendUint64(head, at+uint64(len(head))+8)
	if _, err := unix.PtracePokeData(pid, uintptr(at), append(head, list.Bytes()...)); err != nil {
		return err
	}
	if err := call(pid, unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0); err != nil {
		return err
	}
	return call(pid, unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, at)
}

// call makes a stopped process execute a system call with three arguments, and restores the state of the process.
func call(pid int, number, a, b, c uint64) error {
	var before unix.PtraceRegs
	if err := unix.PtraceGetRegs(pid, &before); err != nil {
		return err
	}
	var code [2]byte
	if _, err := unix.PtracePeekText(pid, uintptr(before.Rip), code[:]); err != nil {
		return err
	}
	instruction := []byte{0x0f, 0x05} // syscall
	if _, err := unix.PtracePokeText(pid, uintptr(before.Rip), instruction); err != nil {
		return err
	}
	r := before
	r.Rax, r.Rdi, r.Rsi, r.Rdx, r.R10, r.R8 = number, a, b, c, 0, 0
	if err := unix.PtraceSetRegs(pid, &r); err != nil {
		return err
	}
	if err := unix.PtraceSingleStep(pid); err != nil {
		return err
	}
	var status unix.WaitStatus
	if _, err := unix.Wait4(pid, &status, 0, nil); err != nil || !status.Stopped() {
		return fmt.Errorf("call %d: %v, %v", number, err, status)
	}
	if err := unix.PtraceGetRegs(pid, &r); err != nil {
		return err
	}
	if _, err := unix.PtracePokeText(pid, uintptr(before.Rip), code[:]); err != nil {
		return err
	}
	if err := unix.PtraceSetRegs(pid, &before); err != nil {
		return err
	}
	if r.Rax != 0 {
		return fmt.Errorf("call %d: %v", number, unix.Errno(-int64(r.Rax)))
	}
	return nil
}

// syscallInfo is struct ptrace_syscall_info of the kernel.
type syscallInfo struct {
	_    [8]uint8
	_, _ uint64
	nr   uint64
	args [6]uint64
	_    uint64
}

// stopped handles a thread that enters a call. It answers the call if the thread belongs to the program, and if the
// call has to fail or asks for the time of the day.
func (in *injector) stopped(thread int) error {
	var info syscallInfo
	if _, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_GET_SYSCALL_INFO, uintptr(thread), unsafe.Sizeof(info), uintptr(unsafe.Pointer(&info)), 0, 0); errno != 0 {
		return errno
	}
	switch {
	case !in.own[thread]:
		return nil
	case info.nr == unix.SYS_CLOCK_GETTIME:
		return in.tellTime(thread, uintptr(info.args[1]))
	case in.entersFailing(thread, &info):
		return giveResult(thread, -int64(unix.EIO))
	}
	return nil
}

// giveResult gives a thread the result of the call that it enters. The kernel does not execute the call.
func giveResult(thread int, result int64) error {
	var r unix.PtraceRegs
	if err := unix.PtraceGetRegs(thread, &r); err != nil {
		return err
	}
	r.Orig_rax, r.Rax = ^uint64(0), uint64(result)
	return unix.PtraceSetRegs(thread, &r)
}

// tellTime answers clock_gettime: it writes the time of Clock to an address of a thread.
func (in *injector) tellTime(thread int, at uintptr) error {
	text, err := os.ReadFile(in.Clock)
	if err != nil {
		return err
	}
	ahead, err := time.ParseDuration(string(text))
	if err != nil {
		return err
	}
	now := time.Now().Add(ahead)
	seconds := endian.NativeEndian.AppendUint64(nil, uint64(now.Unix()))
	if _, err = unix.PtracePokeData(thread, at, endian.NativeEndian.AppendUint64(seconds, uint64(now.Nanosecond()))); err != nil {
		return err
	}
	return giveResult(thread, 0)
}

// The entries of the auxiliary vector of a process that hideFastClock looks for and writes.
const (
	auxEnd      = 0
	auxIgnored  = 1
	auxFastCode = 33 // the code by which a process reads clocks without a system call
)

// hideFastClock makes a new process read clocks by system calls.
func hideFastClock(pid int) error {
	var r unix.PtraceRegs
	if err := unix.PtraceGetRegs(pid, &r); err != nil {
		return err
	}
	word := func(at uint64) uint64 {
		var b [8]byte
		_, _ = unix.PtracePeekData(pid, uintptr(at), b[:]) // after an error, 0 ends the list
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

// entersFailing reports whether a thread enters a call that has to fail. It logs calls that read below Below.
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

// readCalls are the calls that readOf knows.
var readCalls = []uint32{
	unix.SYS_READ, unix.SYS_PREAD64, unix.SYS_GETDENTS64, unix.SYS_FSTAT, unix.SYS_NEWFSTATAT, unix.SYS_STATX,
	unix.SYS_READLINKAT, unix.SYS_OPENAT,
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

// opened returns the path of an open file.
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
	n, _ := unix.ProcessVMReadv(thread, local, remote, 0) // n is less than PathMax at the end of the mapped memory
	end := bytes.IndexByte(text[:max(n, 0)], 0)
	if end < 0 {
		return ""
	}
	return string(text[:end])
}
