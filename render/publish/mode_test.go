package publish

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func checkModes(t *testing.T, out string, want map[string]fs.FileMode) {
	t.Helper()
	for name, mode := range want {
		fi, err := os.Lstat(filepath.Join(out, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := fi.Mode() &^ fs.ModeDir; got != mode {
			t.Errorf("%s has %v, want %v", name, got, mode)
		}
	}
}

func TestModes(t *testing.T) {
	for _, umask := range []int{0o000, 0o022, 0o077} {
		t.Run(fmt.Sprintf("%03o", umask), func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out")
			was := syscall.Umask(umask) // of the whole process: no test here is parallel
			defer syscall.Umask(was)
			publishOnce(t, out, oldPlan())
			checkModes(t, out, map[string]fs.FileMode{
				".":                     0o755,
				".xdspub":               0o700,
				".xdspub/stage":         0o700,
				".xdspub/manifest.json": 0o644,
				"eds":                   0o755,
				"eds/web":               0o755,
				"eds/web/eds.json":      0o644,
				"sds":                   0o755,
				"sds/cert":              0o750,
				"sds/cert/sds.json":     0o640,
				"lds":                   0o755,
			})
			publishOnce(t, out, newPlan()) // lds becomes secret
			checkModes(t, out, map[string]fs.FileMode{"lds": 0o750, "lds/lds.json": 0o640})
			publishOnce(t, out, oldPlan()) // and back
			checkModes(t, out, map[string]fs.FileMode{"lds": 0o755, "lds/lds.json": 0o644})
		})
	}
}

// TestSetgid checks that Publish keeps the setgid bit, by which an administrator gives files a group.
func TestSetgid(t *testing.T) {
	out := t.TempDir()
	folder := filepath.Join(out, "lds")
	if err := errors.Join(os.Mkdir(folder, 0o700), os.Chmod(folder, 0o700|fs.ModeSetgid)); err != nil {
		t.Fatal(err)
	}
	publishOnce(t, out, newPlan())
	checkModes(t, out, map[string]fs.FileMode{"lds": 0o750 | fs.ModeSetgid})
}

// otherGroup returns a group that this process may give to files, and that is not their default.
func otherGroup(t *testing.T) int {
	t.Helper()
	if os.Geteuid() == 0 {
		return 4242
	}
	groups, err := os.Getgroups()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(groups, func(gid int) bool { return gid != os.Getegid() })
	if i < 0 {
		t.Skip("NOT TESTED: the group of secrets: needs root, or a second group for this user")
	}
	return groups[i]
}

func groupFor(group, out string) (int, error) {
	return reading(out, func(root folder) (int, error) { return lookupGroup(group, root) })
}

func checkGroups(t *testing.T, out string, want int, names ...string) {
	t.Helper()
	for _, name := range names {
		fi, err := os.Lstat(filepath.Join(out, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := int(fi.Sys().(*syscall.Stat_t).Gid); got != want {
			t.Errorf("%s has group %d, want %d", name, got, want)
		}
	}
}

func TestGroup(t *testing.T) {
	other := otherGroup(t)
	out := t.TempDir()
	own, err := groupFor("", out)
	if err != nil {
		t.Fatal(err)
	}
	publishOnce(t, out, oldPlan())
	secret := []string{"sds/cert", "sds/cert/sds.json"}
	public := []string{".", "sds", "eds/web", "eds/web/eds.json", ".xdspub"}
	checkGroups(t, out, own, append(secret, public...)...)

	// A group in the options moves the published secrets, by rename: Envoy could not read them before, and must
	// look again.
	before, err := os.Lstat(filepath.Join(out, "sds/cert/sds.json"))
	if err != nil {
		t.Fatal(err)
	}
	d, err := Open(out, Options{Group: strconv.Itoa(other)})
	if err != nil {
		t.Fatal(err)
	}
	res := mustPublish(t, d, oldPlan())
	if len(res.Steps) != 1 || !slices.Equal(res.Steps[0].Written, []string{"sds/cert/sds.json"}) {
		t.Errorf("moved %v", res.Steps)
	}
	d.Close()
	checkGroups(t, out, other, secret...)
	checkGroups(t, out, own, public...)
	after, err := os.Lstat(filepath.Join(out, "sds/cert/sds.json"))
	if err != nil {
		t.Fatal(err)
	}
	if os.SameFile(before, after) {
		t.Error("the secret was changed in place")
	}

	// Without a group in the options, secrets get the group of OUT.
	if err := os.Chown(out, -1, other); err != nil {
		t.Fatal(err)
	}
	publishOnce(t, out, newPlan())
	checkGroups(t, out, other, "sds/mtls", "sds/mtls/sds.json", "lds", "lds/lds.json")
	checkGroups(t, out, own, "eds/api", "eds/api/eds.json", "cds/cds.json")
}

func TestGroupByName(t *testing.T) {
	g, err := user.LookupGroupId(strconv.Itoa(os.Getegid()))
	if err != nil {
		t.Skip("this process's group has no name:", err)
	}
	if gid, err := groupFor(g.Name, t.TempDir()); err != nil || gid != os.Getegid() {
		t.Errorf("group %s is %d, %v; want %d", g.Name, gid, err, os.Getegid())
	}
}

// TestForeignGroup sets a group that this process may not give to files.
func TestForeignGroup(t *testing.T) {
	out := t.TempDir()
	publishOnce(t, out, oldPlan())
	before := published(t, out)
	own, err := groupFor("", out)
	if err != nil {
		t.Fatal(err)
	}
	p := &probe{root: out, fault: func(_ int, call string) error {
		if strings.HasPrefix(call, "chown") {
			return syscall.EPERM
		}
		return nil
	}}
	d, err := open(out, Options{Group: strconv.Itoa(own + 1)}, p)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := d.Publish(context.Background(), newPlan()); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "stage sds/") {
		t.Errorf("error %v", err)
	}
	checkPublished(t, out, before)
	checkPrivate(t, out)
}
