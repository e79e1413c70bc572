package safefile

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// ways are the functions that read a file: by its path, and below a root.
var ways = map[string]func(t *testing.T, dir, name string, limit int64) ([]byte, error){
	"Read": func(t *testing.T, dir, name string, limit int64) ([]byte, error) {
		return Read(filepath.Join(dir, name), limit)
	},
	"ReadIn": func(t *testing.T, dir, name string, limit int64) ([]byte, error) {
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		data, _, err := ReadIn(root, name, limit)
		return data, err
	},
	"ReadOpen": func(_ *testing.T, dir, name string, limit int64) ([]byte, error) {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if errors.Is(err, syscall.ENXIO) { // opening a socket fails
			return nil, &fs.PathError{Op: "open", Path: name, Err: ErrNotRegular}
		}
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return ReadOpen(f, limit)
	},
}

// must ends the test if the test can't be prepared.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "file"), []byte("1234567890"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "empty"), nil, 0o600))
	must(t, os.Symlink("file", filepath.Join(dir, "link")))
	for way, read := range ways {
		for name, want := range map[string]string{"file": "1234567890", "link": "1234567890", "empty": ""} {
			if got, err := read(t, dir, name, 10); err != nil || string(got) != want {
				t.Errorf("%s %s: %q, %v", way, name, got, err)
			}
		}
		_, err := read(t, dir, "file", 9)
		if large, ok := errors.AsType[*TooLargeError](err); !ok || *large != (TooLargeError{10, 9}) {
			t.Errorf("%s: %v", way, err)
		}
		if _, err := read(t, dir, "nothing", 9); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", way, err)
		}
	}
}

// TestNotRegular: a file is not opened if opening it would block or have a side effect.
func TestNotRegular(t *testing.T) {
	dir := t.TempDir()
	must(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	must(t, os.Symlink("pipe", filepath.Join(dir, "link")))
	must(t, os.Mkdir(filepath.Join(dir, "folder"), 0o700))
	t.Chdir(dir) // the path of a socket must be short
	l, err := net.Listen("unix", "socket")
	must(t, err)
	defer l.Close()
	for way, read := range ways {
		for name, want := range map[string]error{"pipe": ErrNotRegular, "link": ErrNotRegular, "socket": ErrNotRegular, "folder": syscall.EISDIR} {
			if _, err := read(t, dir, name, 9); !errors.Is(err, want) || !strings.Contains(err.Error(), name) {
				t.Errorf("%s %s: %v", way, name, err)
			}
		}
	}
	for _, device := range []string{"/dev/zero", "/dev/tty", "/dev/full"} {
		if _, err := Read(device, 9); !errors.Is(err, ErrNotRegular) && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", device, err)
		}
	}
}

// TestTurned: the checks of the opened file count, even if the name led to another file before.
func TestTurned(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "file"), []byte("1"), 0o600))
	must(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	stat := func(string) (fs.FileInfo, error) { return os.Stat(filepath.Join(dir, "file")) }
	if _, _, err := open(filepath.Join(dir, "pipe"), stat, os.OpenFile); !errors.Is(err, ErrNotRegular) {
		t.Errorf("%v", err)
	}
}

// TestKernel: files of the kernel are refused. They look regular and empty, and some are endless.
func TestKernel(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("NOT TESTED, needs Linux")
	}
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink("/proc/self/pagemap", link))
	for _, name := range []string{link, "/proc/self/environ", "/proc/self/pagemap", "/proc/kmsg", "/proc/version", "/sys/kernel/mm/transparent_hugepage/enabled"} {
		_, err := Read(name, 1<<20)
		if !errors.Is(err, ErrKernel) && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSparse: a large file is refused by its size, before the first byte is read.
func TestSparse(t *testing.T) {
	name := filepath.Join(t.TempDir(), "sparse")
	must(t, os.WriteFile(name, nil, 0o600))
	must(t, os.Truncate(name, 1<<30))
	before := new(runtime.MemStats)
	runtime.ReadMemStats(before)
	_, err := Read(name, 128<<20)
	after := new(runtime.MemStats)
	runtime.ReadMemStats(after)
	if large, ok := errors.AsType[*TooLargeError](err); !ok || large.Size != 1<<30 {
		t.Errorf("%v", err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
		t.Errorf("%d bytes were allocated", took)
	}
}

// endless is a file that has more bytes than its reported size.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestReadAll(t *testing.T) {
	_, err := readAll(endless{}, 3, 1000)
	if large, ok := errors.AsType[*TooLargeError](err); !ok || *large != (TooLargeError{0, 1000}) {
		t.Errorf("%v", err)
	}
	if data, err := readAll(strings.NewReader("12345"), 3, 5); string(data) != "12345" || err != nil {
		t.Errorf("%q, %v", data, err)
	}
	if data, err := readAll(strings.NewReader("12"), 3, 5); string(data) != "12" || err != nil {
		t.Errorf("%q, %v", data, err)
	}
	if _, err := readAll(io.MultiReader(strings.NewReader("1"), failing{}), 3, 5); !errors.Is(err, syscall.EIO) {
		t.Errorf("%v", err)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, syscall.EIO }
