package publish

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPublish(t *testing.T) {
	out := t.TempDir()
	d := mustOpen(t, out, osDisk{})
	mustPublish(t, d, oldPlan())
	checkPublished(t, out, oldFiles)

	res := mustPublish(t, d, newPlan())
	checkPublished(t, out, newFiles)
	checkPrivate(t, out)
	want := []StepResult{
		{"new", []string{"sds/mtls/sds.json", "eds/api/eds.json"}, nil},
		{"clusters", []string{"cds/cds.json"}, nil},
		{"listeners", []string{"lds/lds.json"}, []string{"eds/old/eds.json"}},
	}
	if !slices.EqualFunc(res.Steps, want, func(a, b StepResult) bool {
		return a.Name == b.Name && slices.Equal(a.Written, b.Written) && slices.Equal(a.Removed, b.Removed)
	}) {
		t.Errorf("result %v, want %v", res.Steps, want)
	}
	m, err := ReadManifest(out)
	if err != nil || m.Snapshot != "s2" || !m.Published.Equal(day2) || len(m.Retired) != 1 {
		t.Errorf("manifest %+v, %v", m, err)
	}
}

// TestCalls checks the order of all calls: Publish stages, flushes and closes all files before the first
// rename, writes the record first and last, and flushes the folders of a step before the next step.
func TestCalls(t *testing.T) {
	out := t.TempDir()
	publishOnce(t, out, oldPlan())
	p := &probe{root: out}
	d := mustOpen(t, out, p)
	p.calls = nil
	mustPublish(t, d, newPlan())
	want := `
create .xdspub/stage/0001
write .xdspub/stage/0001
chmod -rw-r--r-- .xdspub/stage/0001
sync .xdspub/stage/0001
close .xdspub/stage/0001
create .xdspub/stage/0002
write .xdspub/stage/0002
chmod -rw-r--r-- .xdspub/stage/0002
sync .xdspub/stage/0002
close .xdspub/stage/0002
create .xdspub/stage/0003
write .xdspub/stage/0003
chmod -rw-r--r-- .xdspub/stage/0003
sync .xdspub/stage/0003
close .xdspub/stage/0003
create .xdspub/stage/0004
write .xdspub/stage/0004
chmod -rw-r----- .xdspub/stage/0004
sync .xdspub/stage/0004
close .xdspub/stage/0004
create .xdspub/stage/0005
write .xdspub/stage/0005
chmod -rw-r--r-- .xdspub/stage/0005
sync .xdspub/stage/0005
close .xdspub/stage/0005
create .xdspub/stage/0006
write .xdspub/stage/0006
chmod -rw-r--r-- .xdspub/stage/0006
sync .xdspub/stage/0006
close .xdspub/stage/0006
create .xdspub/stage/0007
write .xdspub/stage/0007
chmod -rw-r----- .xdspub/stage/0007
sync .xdspub/stage/0007
close .xdspub/stage/0007
open .xdspub/stage
sync .xdspub/stage
close .xdspub/stage
rename .xdspub/stage/0001 .xdspub/intent
open .xdspub
sync .xdspub
close .xdspub
rename .xdspub/stage/0002 .xdspub/manifest.json
open .xdspub
sync .xdspub
close .xdspub
mkdir sds/mtls
open sds
sync sds
close sds
chmod -rwxr-x--- sds/mtls
mkdir eds/api
open eds
sync eds
close eds
chmod -rwxr-xr-x eds/api
rename .xdspub/stage/0004 sds/mtls/sds.json
rename .xdspub/stage/0005 eds/api/eds.json
open sds/mtls
sync sds/mtls
close sds/mtls
open eds/api
sync eds/api
close eds/api
rename .xdspub/stage/0006 cds/cds.json
open cds
sync cds
close cds
chmod -rwxr-x--- lds
rename .xdspub/stage/0007 lds/lds.json
open lds
sync lds
close lds
remove eds/old/eds.json
open eds/old
sync eds/old
close eds/old
rename .xdspub/stage/0003 .xdspub/manifest.json
open .xdspub
sync .xdspub
close .xdspub
remove .xdspub/intent
open .xdspub
sync .xdspub
close .xdspub
`
	if got := "\n" + strings.Join(p.calls, "\n") + "\n"; got != want {
		t.Errorf("calls:%s\nwant:%s", got, want)
	}
}

// TestOneRecord publishes a change that needs no record before its end, and checks that the record is written
// once.
func TestOneRecord(t *testing.T) {
	out := t.TempDir()
	publishOnce(t, out, oldPlan())
	p := &probe{root: out}
	d := mustOpen(t, out, p)
	p.calls = nil
	next := oldPlan()
	next.Steps[0].Write[1].Data = []byte("web 2")
	next.Manifest.Snapshot, next.Manifest.Published = "s2", day2
	mustPublish(t, d, next)
	var renames []string
	for _, call := range p.calls {
		if strings.HasPrefix(call, "rename") {
			renames = append(renames, call)
		}
	}
	want := []string{"rename .xdspub/stage/0001 .xdspub/intent", "rename .xdspub/stage/0003 eds/web/eds.json", "rename .xdspub/stage/0002 .xdspub/manifest.json"}
	if !slices.Equal(renames, want) {
		t.Errorf("%q, want %q", renames, want)
	}
}

// TestSettled publishes a plan twice, and checks that the second publish changes nothing on disk.
func TestSettled(t *testing.T) {
	out := t.TempDir()
	publishOnce(t, out, newPlan())
	p := &probe{root: out}
	d := mustOpen(t, out, p)
	p.calls = nil
	again := newPlan()
	again.Manifest.Published = day2.Add(time.Hour)
	if res := mustPublish(t, d, again); len(res.Steps) > 0 || len(p.calls) > 0 {
		t.Errorf("moved %v with %v", res.Steps, p.calls)
	}
	// A change of the record alone is written into the record.
	again.Manifest.Retired = nil
	mustPublish(t, d, again)
	if m, err := ReadManifest(out); err != nil || len(m.Retired) > 0 || !m.Published.Equal(again.Manifest.Published) {
		t.Errorf("manifest %+v, %v", m, err)
	}
}

func TestInodes(t *testing.T) {
	out := t.TempDir()
	publishOnce(t, out, oldPlan())
	look := func(name string) fs.FileInfo {
		t.Helper()
		fi, err := os.Stat(filepath.Join(out, name))
		if err != nil {
			t.Fatal(err)
		}
		return fi
	}
	same := []string{"eds", "eds/web", "eds/web/eds.json", "eds/old", "sds", "sds/cert", "sds/cert/sds.json", "cds", "lds"}
	replaced := []string{"cds/cds.json", "lds/lds.json"}
	before := map[string]fs.FileInfo{}
	for _, name := range slices.Concat(same, replaced) {
		before[name] = look(name)
	}
	publishOnce(t, out, newPlan())
	for _, name := range same {
		now := look(name)
		if !os.SameFile(before[name], now) {
			t.Errorf("%s is another inode", name)
		}
		if !now.IsDir() && !now.ModTime().Equal(before[name].ModTime()) {
			t.Errorf("%s was touched", name)
		}
	}
	for _, name := range replaced {
		if os.SameFile(before[name], look(name)) {
			t.Errorf("%s was written in place", name)
		}
	}
}
