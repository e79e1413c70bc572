package machine

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestScan finds this process, with an inotify watch, two sockets and their addresses.
func TestScan(t *testing.T) {
	dir := t.TempDir()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	must(t, err)
	defer unix.Close(fd)
	_, err = unix.InotifyAddWatch(fd, dir, unix.IN_MOVED_TO)
	must(t, err)
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer tcp.Close()
	t.Chdir(dir) // the path of a socket must be short
	socket := filepath.Join(dir, "s")
	if len(socket) > 100 {
		t.Skip("NOT TESTED, the path of the test's folder is too long for a socket")
	}
	unixSocket, err := net.Listen("unix", socket)
	must(t, err)
	defer unixSocket.Close()

	all, err := System.Scan(t.Context())
	must(t, err)
	self := all.Of(os.Getpid())
	if self == nil || self.Hidden {
		t.Fatalf("this process: %+v", self)
	}
	info, err := os.Stat(dir)
	must(t, err)
	if list := all.Watching(Inode(info)); len(list) != 1 || list[0] != self || self.Instances < 1 || self.Watches < 1 {
		t.Errorf("%d processes watch, this one has %d instances and %d watches", len(list), self.Instances, self.Watches)
	}
	if list := all.Watching(1 << 60); list != nil {
		t.Errorf("%v watch nothing", list)
	}
	if n, w, _ := all.Inotify(os.Geteuid()); n < self.Instances || w < self.Watches {
		t.Errorf("the user has %d instances and %d watches", n, w)
	}
	for address, want := range map[string]*Process{
		tcp.Addr().String(): self, fmt.Sprintf("localhost:%d", tcp.Addr().(*net.TCPAddr).Port): self, "127.0.0.1:1": nil, "192.0.2.1:80": nil, "nonsense": nil,
	} {
		if got := all.Listener("tcp", address); got != want {
			t.Errorf("%s: %+v", address, got)
		}
	}
	for path, want := range map[string]*Process{socket: self, "s": self, "/nowhere": nil} {
		if got := all.Listener("unix", path); got != want {
			t.Errorf("%s: %+v", path, got)
		}
	}
	if d := time.Since(self.Started); d < 0 || d > time.Hour {
		t.Errorf("this process began %v ago", d)
	}
	if self.Descriptors < 5 || self.MostDescriptors < self.Descriptors || !self.SameFiles() {
		t.Errorf("%+v", self)
	}
	if seen, err := self.Sees(dir); err != nil || Inode(seen) != Inode(info) {
		t.Errorf("%v, %v", seen, err)
	}
	if System.Instances().Value < 1 || System.Watches().Value < 1 {
		t.Error("no limits")
	}
}

// TestLocker finds the process that holds a lock.
func TestLocker(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "lock"))
	must(t, err)
	defer f.Close()
	info, err := f.Stat()
	must(t, err)
	for _, want := range []int{0, os.Getpid()} {
		if got, err := System.Locker(Inode(info)); got != want || err != nil {
			t.Errorf("%d, %v, want %d", got, err, want)
		}
		must(t, unix.Flock(int(f.Fd()), unix.LOCK_EX))
	}
}

// TestHostileProc: files of a proc file system that are missing, damaged or endless end no scan.
func TestHostileProc(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	if _, err := Proc(dir).Scan(t.Context()); err != ErrNoProc {
		t.Error(err)
	}
	write("stat", "cpu 1\nintr "+strings.Repeat("0 ", 100_000)+"\nbtime 1700000000\n")
	const status = "Name:\tev\x1bil\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\nGroups:\t9 10 x\nCapEff:\t0000000000000002\n"
	for pid, files := range map[string]map[string]string{
		"1":                    {"status": status, "stat": "1 (a) b) S " + strings.Repeat("0 ", 18) + "4200 0\n", "limits": "Max open files unlimited unlimited files\n", "fd/0": "", "fdinfo/0": ""},
		"2":                    {"status": "Uid:\t1\n", "stat": ""},
		"3":                    {"status": status, "stat": "3 (a"},
		"4":                    {"status": strings.Repeat("x", 1<<20), "stat": ""},
		"-5":                   {"status": status},
		"6x":                   {"status": status},
		"99999999999999999999": {"status": status},
	} {
		for name, text := range files {
			write(pid+"/"+name, text)
		}
	}
	write("net/tcp", "  sl  local_address\n   0: 0100007F:1F90 00000000:0000 0A x\n 1: zz\n")
	write("locks", "1: FLOCK\n2: POSIX ADVISORY WRITE 5 00:1b:77 0 EOF\n3: FLOCK ADVISORY WRITE 0 00:1b:78 0 EOF\n")
	all, err := Proc(dir).Scan(t.Context())
	must(t, err)
	if len(all.List) != 1 {
		t.Fatalf("%d processes", len(all.List))
	}
	p := all.List[0]
	if p.Name != "ev\uFFFDil" || p.User.ID != 2 || fmt.Sprint(p.User.Groups) != "[8 9 10]" || !p.User.Privileged || p.MostDescriptors != 0 ||
		!p.Started.Equal(time.Unix(1700000042, 0)) || p.Descriptors != 1 {
		t.Errorf("%+v", p)
	}
	if all.Whole() || all.Listener("tcp", "127.0.0.1:8080") != nil || p.SameFiles() {
		t.Error("nothing tells that")
	}
	for inode, want := range map[uint64]int{77: 0, 78: -1, 79: 0} {
		if got, err := Proc(dir).Locker(inode); got != want || err != nil {
			t.Errorf("%d: %d, %v", inode, got, err)
		}
	}
	if l := Proc(dir).Instances(); l.Value != 0 {
		t.Errorf("%+v", l)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Proc(dir).Scan(ended); err == nil {
		t.Error("the scan does not end with its context")
	}
}

func TestUserNamed(t *testing.T) {
	root, err := UserNamed("root")
	if err != nil || root.ID != 0 || !root.Privileged || len(root.Groups) == 0 {
		t.Errorf("%+v, %v", root, err)
	}
	for text, want := range map[string]string{
		"4242:17":      "{ID:4242 Groups:[17] Privileged:false}",
		"4242424":      "does not know the groups of user 4242424: write UID:GID",
		"no-such-user": `no user "no-such-user" on this machine`,
		"4242:wheel":   `invalid group "wheel"`,
		"-1:0":         `no user "-1"`,
		"4294967296:0": `no user "4294967296"`,
	} {
		got, err := UserNamed(text)
		type plain User
		if says := fmt.Sprintf("%+v, %v", plain(got), err); !strings.Contains(says, want) {
			t.Errorf("%s: %s, want %s", text, says, want)
		}
	}
}

// TestKinds names file systems that a test can't mount.
func TestKinds(t *testing.T) {
	for magic, want := range map[int64]string{
		unix.NFS_SUPER_MAGIC: "nfs true", unix.V9FS_MAGIC: "9p true", unix.FUSE_SUPER_MAGIC: "fuse true", unix.SMB2_SUPER_MAGIC: "smb2 true",
		unix.OVERLAYFS_SUPER_MAGIC: "overlay false", unix.EXT4_SUPER_MAGIC: " false", unix.TMPFS_MAGIC: " false", 0: " false",
	} {
		kind, remote := kindOf(magic)
		if got := fmt.Sprint(kind, " ", remote); got != want {
			t.Errorf("%x: %s, want %s", magic, got, want)
		}
	}
	if v, err := VolumeOf("/"); err != nil || v.Free == 0 {
		t.Errorf("%+v, %v", v, err)
	}
	if _, err := VolumeOf("/nowhere"); err == nil {
		t.Error("there is no such path")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
