package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const envMounts = "XDSPUB_TEST_MOUNTS"

// withMounts runs test in a process that may mount file systems: this binary in a new mount namespace. All
// mounts end with the namespace.
func withMounts(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	if os.Getenv(envMounts) != "" {
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			t.Skip("mount:", err)
		}
		test(t)
		return
	}
	cmd := child(self(t), envMounts+"=1")
	cmd.Args = append(cmd.Args, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Stderr = nil // CombinedOutput sets it
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if uid, gid := os.Geteuid(), os.Getegid(); uid != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: gid, Size: 1}}
	}
	output, err := cmd.CombinedOutput()
	_, ran := errors.AsType[*exec.ExitError](err)
	switch {
	case ran:
		t.Errorf("in the namespace: %v\n%s", err, output)
	case err != nil: // this user may not create the namespace
		t.Skipf("NOT TESTED, needs root or user namespaces: %v", err)
	case bytes.Contains(output, []byte("--- SKIP")):
		t.Skipf("NOT TESTED, needs permission to mount:\n%s", output)
	case !bytes.Contains(output, []byte("--- PASS: "+t.Name())):
		t.Errorf("in the namespace nothing ran:\n%s", output)
	}
}

// mount mounts a file system until the test ends. It is unmounted then, so that t.TempDir can remove the
// folder.
func mount(t *testing.T, source, target, kind string, flags uintptr, data string) {
	t.Helper()
	err := unix.Mount(source, target, kind, flags, data)
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		t.Skip("mount:", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(target, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

func TestFullDisk(t *testing.T) {
	withMounts(t, func(t *testing.T) {
		out := t.TempDir()
		mount(t, "tmpfs", out, "tmpfs", 0, "size=256k")
		publishOnce(t, out, oldPlan())
		d := mustOpen(t, out, osDisk{})
		p := newPlan()
		p.Steps[2].Write[1].Data = bytes.Repeat([]byte("x"), 1<<20)
		res, err := d.Publish(context.Background(), p)
		if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "stage lds/lds.json: write ") {
			t.Errorf("error %v", err)
		}
		if len(res.Steps) > 0 {
			t.Errorf("moved %v", res.Steps)
		}
		checkPublished(t, out, oldFiles)
		checkPrivate(t, out)
		if m, err := ReadManifest(out); err != nil || m.Snapshot != "s1" {
			t.Errorf("manifest %+v, %v", m, err)
		}
		mustPublish(t, d, newPlan()) // now there is space
		checkPublished(t, out, newFiles)
	})
}

// TestNoInodes leaves one inode more in each run, so that the disk is full at each call that creates something,
// such as a folder between renames.
func TestNoInodes(t *testing.T) {
	withMounts(t, func(t *testing.T) {
		var failures []string
		for spare, done := 0, false; !done && !t.Failed(); spare++ {
			t.Run(fmt.Sprint(spare), func(t *testing.T) {
				out := t.TempDir()
				mount(t, "tmpfs", out, "tmpfs", 0, "nr_inodes=100")
				publishOnce(t, out, oldPlan())
				var fs unix.Statfs_t
				if err := unix.Statfs(out, &fs); err != nil {
					t.Fatal(err)
				}
				resize := func(inodes uint64) {
					if err := unix.Mount("", out, "", unix.MS_REMOUNT, fmt.Sprintf("nr_inodes=%d", inodes)); err != nil {
						t.Fatal(err)
					}
				}
				resize(fs.Files - fs.Ffree + uint64(spare))
				d := mustOpen(t, out, osDisk{})
				defer d.Close()
				_, err := d.Publish(context.Background(), newPlan())
				checkHalfway(t, out)
				checkPrivate(t, out)
				if done = err == nil; !done {
					if !errors.Is(err, syscall.ENOSPC) {
						t.Errorf("error %v", err)
					}
					failures = append(failures, err.Error())
					resize(100)
					mustPublish(t, d, newPlan())
				}
				checkPublished(t, out, newFiles)
			})
		}
		all := strings.Join(failures, "\n")
		if !strings.Contains(all, "stage lds/lds.json: open ") || !strings.Contains(all, "stopped in step new, the next run continues from there: mkdir ") {
			t.Errorf("the disk was not full in all places:\n%s", all)
		}
	})
}

func TestReadOnly(t *testing.T) {
	withMounts(t, func(t *testing.T) {
		out := t.TempDir()
		mount(t, "tmpfs", out, "tmpfs", 0, "")
		publishOnce(t, out, oldPlan())
		if err := unix.Mount("", out, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(out, Options{}); !errors.Is(err, syscall.EROFS) {
			t.Errorf("Open: %v", err)
		}
		// Functions that only read still work.
		if left, err := Pending(out, newPlan(), Options{}); err != nil || len(left.Steps) != 3 {
			t.Errorf("Pending: %v, %v", left, err)
		}
		if m, err := ReadManifest(out); err != nil || m.Snapshot != "s1" {
			t.Errorf("ReadManifest: %+v, %v", m, err)
		}
		checkPublished(t, out, oldFiles)
		checkPrivate(t, out)
	})
}

// TestOtherFileSystem mounts another file system where the last step moves a file. Publish must notice this
// before the first step.
func TestOtherFileSystem(t *testing.T) {
	withMounts(t, func(t *testing.T) {
		const want = "(the whole output directory, with .xdspub, must be on one file system"
		out := t.TempDir()
		publishOnce(t, out, oldPlan())
		d := mustOpen(t, out, osDisk{})
		lds := filepath.Join(out, "lds")
		file := filepath.Join(lds, "lds.json")
		for _, tt := range []struct {
			name, at string
			mount    func(t *testing.T)
		}{
			{"another", lds, func(t *testing.T) { mount(t, "tmpfs", lds, "tmpfs", 0, "mode=755") }},
			{"another mount of the same", lds, func(t *testing.T) { mount(t, lds, lds, "", unix.MS_BIND, "") }},
			{"a file", file, func(t *testing.T) { mount(t, file, file, "", unix.MS_BIND, "") }},
			{"the stage", filepath.Join(out, "cds"), func(t *testing.T) {
				mount(t, "tmpfs", filepath.Join(out, stagePath), "tmpfs", 0, "mode=700")
			}},
			{"the stage, read-only", filepath.Join(out, "cds"), func(t *testing.T) {
				stage := filepath.Join(out, stagePath)
				mount(t, stage, stage, "", unix.MS_BIND, "")
				if err := unix.Mount("", stage, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
					t.Fatal(err)
				}
			}},
		} {
			t.Run(tt.name, func(t *testing.T) {
				tt.mount(t)
				res, err := d.Publish(context.Background(), newPlan())
				if !errors.Is(err, syscall.EXDEV) || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v", err)
				}
				if !strings.HasPrefix(tt.name, "the stage") && !strings.Contains(err.Error(), "rename "+tt.at+": ") {
					t.Errorf("error %v does not name %s", err, tt.at)
				}
				if len(res.Steps) > 0 {
					t.Errorf("moved %v, before it was seen", res.Steps)
				}
				checkPrivate(t, out)
			})
			checkPublished(t, out, oldFiles)
		}
		mustPublish(t, d, newPlan())
		checkPublished(t, out, newFiles)
	})
}

// TestWholeOutElsewhere puts the whole output directory into memory, which keeps secrets off the disk, and then
// mounts another file system over it.
func TestWholeOutElsewhere(t *testing.T) {
	withMounts(t, func(t *testing.T) {
		dir := t.TempDir()
		out, again := filepath.Join(dir, "out"), filepath.Join(dir, "again")
		if err := errors.Join(os.Mkdir(out, 0o755), os.Mkdir(again, 0o755)); err != nil {
			t.Fatal(err)
		}
		mount(t, "tmpfs", out, "tmpfs", 0, "mode=755")
		publishOnce(t, out, oldPlan())
		d := mustOpen(t, out, osDisk{})
		mount(t, out, again, "", unix.MS_BIND, "")
		if _, err := Open(again, Options{}); err == nil {
			t.Error("locked twice")
		}
		mustPublish(t, d, newPlan())
		checkPublished(t, again, newFiles)
		// Another file system is mounted over the directory, so nobody sees the published files.
		mount(t, "tmpfs", out, "tmpfs", 0, "mode=755")
		if _, err := d.Publish(context.Background(), oldPlan()); !errors.Is(err, ErrLost) {
			t.Errorf("error %v", err)
		}
		checkPublished(t, again, newFiles)
	})
}
