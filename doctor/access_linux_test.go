package doctor

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"xdspub/doctor/machine"
)

// TestAccessControlLists: doctor does not judge a file with an access control list, and says so.
func TestAccessControlLists(t *testing.T) {
	dir := t.TempDir()
	// Version 2: the owner rw-, the user with the ID 4242 r--, the group ---, the mask r--, others ---.
	list := []byte("\x02\x00\x00\x00\x01\x00\x06\x00\xff\xff\xff\xff\x02\x00\x04\x00\x92\x10\x00\x00\x04\x00\x00\x00\xff\xff\xff\xff\x10\x00\x04\x00\xff\xff\xff\xff\x20\x00\x00\x00\xff\xff\xff\xff")
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setxattr(file, "system.posix_acl_access", list, 0); err != nil {
		t.Skip("NOT TESTED, the file system has no access control lists:", err)
	}
	a := &access{user: machine.User{ID: 4242}, of: dir}
	a.look(file, machine.Read, false)
	if a.lists != 1 || len(a.denied) > 0 {
		t.Errorf("%+v", a)
	}
}

// TestInotifyNeedsRead: the kernel demands that the user may read a folder that Envoy watches, as envoyAccess says.
func TestInotifyNeedsRead(t *testing.T) {
	for mode, want := range map[os.FileMode]bool{0o711: false, 0o755: true, 0o700: false} {
		dir := t.TempDir()
		for path, mode := range map[string]os.FileMode{filepath.Dir(dir): 0o755, dir: mode} {
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
		}
		info, err := os.Stat(dir)
		if err != nil {
			t.Fatal(err)
		}
		other := machine.User{ID: 4242, Groups: []int{4242}}
		if got := other.May(info, machine.Read|machine.Search); got != want {
			t.Errorf("%v: %v, want %v", mode, got, want)
		}
		if os.Geteuid() == 0 {
			if err := watchAs(dir, 4242); (err == nil) != want {
				t.Errorf("%v: the kernel says %v, want %v", mode, err, want)
			}
		}
	}
}

// watchAs watches a folder as another user. The user of the file system belongs to a thread.
func watchAs(dir string, uid int) error {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	ended := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		if err := unix.Setfsuid(uid); err != nil {
			ended <- err
			return
		}
		_, err := unix.InotifyAddWatch(fd, dir, unix.IN_MOVED_TO)
		ended <- err
	}()
	return <-ended
}
