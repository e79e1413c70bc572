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

// probe is the real disk, with an eye on every call that changes something.
type probe struct {
	root  string
	calls []string // as in "rename .xdspub/stage/0001 cds/cds.json"
	// fault is asked before each call, the n-th from 1; what it returns is
	// reported in place of the call's own result.
	fault func(n int, call string) error
	// late makes the call all the same, and reports the fault after it.
	late bool
	// quick leaves fsync out: it makes no difference to what a process sees,
	// and all the difference to how long thousands of publishes take.
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

func (p *probe) OpenFile(name string, flag int, mode fs.FileMode) (f file, err error) {
	op := "create"
	if flag&os.O_CREATE == 0 {
		op = "open"
	}
	if err = p.call(op, func() error { f, err = osDisk{}.OpenFile(name, flag, mode); return err }, name); err != nil {
		if f != nil {
			f.Close()
		}
		return nil, err
	}
	return &probeFile{file: f, p: p, name: name}, nil
}

func (p *probe) Mkdir(name string, mode fs.FileMode) error {
	return p.call("mkdir", func() error { return osDisk{}.Mkdir(name, mode) }, name)
}

func (p *probe) Chmod(name string, mode fs.FileMode) error {
	return p.call("chmod "+mode.String(), func() error { return osDisk{}.Chmod(name, mode) }, name)
}

func (p *probe) Chown(name string, uid, gid int) error {
	return p.call("chown", func() error { return osDisk{}.Chown(name, uid, gid) }, name)
}

func (p *probe) Rename(from, to string) error {
	return p.call("rename", func() error { return osDisk{}.Rename(from, to) }, from, to)
}

func (p *probe) Remove(name string) error {
	return p.call("remove", func() error { return osDisk{}.Remove(name) }, name)
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

// Close closes in any case, as close(2) does when it reports an error.
func (f *probeFile) Close() error {
	err := f.file.Close()
	if cerr := f.p.call("close", func() error { return nil }, f.name); cerr != nil {
		return cerr
	}
	return err
}

// TestOneDoor holds the package to its seam: a call that changes the disk past
// it would be one that no fault is ever injected into.
func TestOneDoor(t *testing.T) {
	reading := []string{
		"os.ReadFile", "os.ReadDir", "os.DirFS", "os.Stat", "os.Lstat", "os.Getpid", "os.ErrClosed",
		"os.O_RDONLY", "os.O_RDWR", "os.O_WRONLY", "os.O_CREATE", "os.O_EXCL",
		"unix.Flock", "unix.Fstat", "unix.Stat", "unix.Stat_t", "unix.LOCK_EX", "unix.LOCK_NB", "unix.LOCK_UN", "unix.EWOULDBLOCK",
		"syscall.EISDIR", "syscall.ENOTDIR", "syscall.EXDEV", "syscall.Stat_t",
	}
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") || name == "disk.go" {
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
