package publish

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// probe is the real disk. probe records each call that changes the disk, and can make it fail.
type probe struct {
	root  string
	calls []string // as in "rename .xdspub/stage/0001 cds/cds.json"
	// fault runs before each call; n counts calls from 1. If fault returns an error, the call is not made and
	// returns that error.
	fault func(n int, call string) error
	// late means that the call is made nevertheless, before its error is returned.
	late bool
	// quick omits fsync. Processes see no difference, and thousands of publishes take much less time.
	quick bool
}

func (p *probe) call(op string, do func() error, names ...string) error {
	for _, name := range names {
		rel, err := filepath.Rel(p.root, name)
		if err != nil {
			return err
		}
		op += " " + rel
	}
	p.calls = append(p.calls, op)
	if p.fault != nil {
		if err := p.fault(len(p.calls), op); err != nil {
			if p.late {
				do()
			}
			return err
		}
	}
	return do()
}

func (p *probe) OpenFile(in folder, name string, flag int, mode fs.FileMode) (f file, err error) {
	op := "create"
	if flag&os.O_CREATE == 0 {
		op = "open"
	}
	if err = p.call(op, func() error { f, err = osDisk{}.OpenFile(in, name, flag, mode); return err }, in.path(name)); err != nil {
		if f != nil {
			f.Close()
		}
		return nil, err
	}
	return &probeFile{file: f, p: p, name: in.path(name)}, nil
}

func (p *probe) Mkdir(in folder, name string, mode fs.FileMode) error {
	return p.call("mkdir", func() error { return osDisk{}.Mkdir(in, name, mode) }, in.path(name))
}

func (p *probe) Chmod(f file, mode fs.FileMode) error {
	return p.call("chmod "+mode.String(), func() error { return osDisk{}.Chmod(f, mode) }, f.Name())
}

func (p *probe) Chown(f file, gid int) error {
	return p.call("chown", func() error { return osDisk{}.Chown(f, gid) }, f.Name())
}

func (p *probe) Rename(from folder, name string, to folder, toName string) error {
	return p.call("rename", func() error { return osDisk{}.Rename(from, name, to, toName) }, from.path(name), to.path(toName))
}

func (p *probe) Remove(in folder, name string) error {
	return p.call("remove", func() error { return osDisk{}.Remove(in, name) }, in.path(name))
}

// Many makes the larger scenarios flush all files at once, and other scenarios each file.
func (p *probe) Many() int { return 8 }

func (p *probe) SyncAll(in folder) error {
	return p.call("sync all", func() error {
		if p.quick {
			return nil
		}
		return osDisk{}.SyncAll(in)
	}, in.Name())
}

type probeFile struct {
	file
	p    *probe
	name string
}

// Write fails as a full disk does, with half of the bytes written.
func (f *probeFile) Write(b []byte) (n int, err error) {
	half := len(b) / 2
	if n, err = f.file.Write(b[:half]); err != nil {
		return n, err
	}
	err = f.p.call("write", func() error { n, err = f.file.Write(b[half:]); n += half; return err }, f.name)
	return n, err
}

func (f *probeFile) Sync() error {
	return f.p.call("sync", func() error {
		if f.p.quick {
			return nil
		}
		return f.file.Sync()
	}, f.name)
}

// Close closes the file even if it returns an error, as close(2) does.
func (f *probeFile) Close() error {
	err := f.file.Close()
	if cerr := f.p.call("close", func() error { return nil }, f.name); cerr != nil {
		return cerr
	}
	return err
}

// TestOneDoor checks that package publish changes the disk only through type disk, because the tests inject no
// fault into other calls.
func TestOneDoor(t *testing.T) {
	reading := []string{
		"os.Lstat", "os.OpenFile", "os.NewFile", "os.File", "os.Getpid", "os.ErrClosed",
		"os.O_RDONLY", "os.O_RDWR", "os.O_WRONLY", "os.O_CREATE", "os.O_EXCL",
		"unix.Flock", "unix.LOCK_EX", "unix.LOCK_NB", "unix.LOCK_UN", "unix.EWOULDBLOCK",
		"unix.Openat", "unix.O_DIRECTORY", "unix.O_NOFOLLOW", "unix.O_NONBLOCK", "unix.O_CLOEXEC", "unix.EINTR", "unix.ENOTDIR", "unix.EISDIR",
		"unix.Fstat", "unix.Fstatat", "unix.Statx", "unix.Statx_t", "unix.STATX_MNT_ID", "unix.ENOSYS", "unix.EPERM", "unix.AT_SYMLINK_NOFOLLOW", "unix.Stat_t",
		"unix.S_IFMT", "unix.S_IFREG", "unix.S_IFDIR", "unix.S_IFLNK", "unix.S_IFIFO", "unix.S_IFSOCK", "unix.S_ISUID", "unix.S_ISGID", "unix.S_ISVTX",
		"syscall.EISDIR", "syscall.EXDEV", "syscall.ENOTEMPTY", "syscall.EEXIST",
	}
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") || name == "disk.go" || strings.HasPrefix(name, "sync_") {
			continue
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			pkg, ok := sel.X.(*ast.Ident)
			if !ok || !slices.Contains([]string{"os", "unix", "syscall"}, pkg.Name) {
				return true
			}
			if use := pkg.Name + "." + sel.Sel.Name; !slices.Contains(reading, use) {
				t.Errorf("%s: %s: what changes the disk goes through the disk interface; what only reads is listed here", fset.Position(sel.Pos()), use)
			}
			return true
		})
	}
}
