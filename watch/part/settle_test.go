package part_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"xdspub/check"
	"xdspub/diag"
	"xdspub/source/owners"
	"xdspub/tools/memdir"
	"xdspub/tools/portion"
	"xdspub/watch/part"
	"xdspub/xds"
)

// folder is a random folder of an owner: an EDS cluster, which refers to a shared secret, with its endpoints.
type folder struct {
	content int
	fault   int
}

// The faults of a folder.
const (
	none = iota
	halfWritten
	unknownField
	noEndpoints // a reference leads nowhere
	claims      // a name that another owner has
	faults
)

// files returns the files of an owner; nil for a removed folder.
func (f folder) files(owner string) map[string]string {
	cluster := func(name string) string {
		return fmt.Sprintf("\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\nname: %s\ntype: EDS\nconnect_timeout: %ds\neds_cluster_config: {eds_config: {self: {}}}\n", name, f.content+1)
	}
	files := map[string]string{
		"cluster.yaml": cluster(owner),
		"eds.yaml": fmt.Sprintf("\"@type\": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment\ncluster_name: %s\n"+
			"endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: %d}}}}]}]\n", owner, f.content+1),
	}
	switch f.fault {
	case halfWritten:
		files["cluster.yaml"] = "name: ["
	case unknownField:
		files["cluster.yaml"] += "no_such_field: 1\n"
	case noEndpoints:
		delete(files, "eds.yaml")
	case claims:
		files["claim.yaml"] = "\"@type\": type.googleapis.com/envoy.service.runtime.v3.Runtime\nname: claimed\n"
	}
	return files
}

// TestSettle plays random edits and faults of owners. The settled Snapshot has no error. Each owner has all resources
// of its folder as it is now, or all of its folder as it was last valid.
func TestSettle(t *testing.T) {
	heldSome, heldTwo := 0, 0
	for seed := range uint64(40 / portion.Every(2, 4)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			dir := memdir.New(t)
			o := check.Options{Path: dir, Owners: []string{"teams/*"}}
			tree, judge := check.New(o), check.New(o)
			all := map[string]folder{"teams/a": {}, "teams/b": {}, "teams/c": {}}
			live := xds.NewSnapshot(nil)
			was := make(map[string][]string) // the versions of the last settled folders
			for step := range 30 {
				write(t, dir, all)
				checked, err := tree.Check(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				errorsIn := func(list diag.List) diag.List {
					return slices.DeleteFunc(slices.Clone(list), func(d diag.Diagnostic) bool { return d.Severity != diag.Error })
				}
				settled := part.Settled{Snapshot: checked.Snapshot}
				if faults := errorsIn(checked.Diagnostics); len(faults) > 0 {
					refused := part.Tree{Live: live, Read: checked.Snapshot, Folders: owners.New(dir, o.Owners), Faults: faults}
					refused.Judge = func(s *xds.Snapshot, held []string) (diag.List, error) {
						r, err := judge.Judge(t.Context(), s, checked)
						return errorsIn(r.Diagnostics), err
					}
					settled, err = refused.Settle()
				}
				if err != nil || settled.Waits != "" {
					t.Fatalf("step %d: %s %v", step, settled.Waits, err)
				}
				if len(settled.Held) > 0 {
					heldSome++
				}
				if len(settled.Held) > 1 {
					heldTwo++
				}
				for name := range was {
					if _, stays := all[name]; !stays {
						delete(was, name)
					}
				}
				for name, f := range all {
					var want []string
					for _, r := range checked.Snapshot.All() {
						if r.Owner == name {
							want = append(want, version(r))
						}
					}
					if slices.Contains(settled.Held, name) {
						want = was[name]
					} else if f.fault != none && f.fault != claims {
						t.Errorf("step %d: %s with fault %d is not held", step, name, f.fault)
					}
					got := versions(settled.Snapshot, name)
					if !slices.Equal(got, want) {
						t.Errorf("step %d: %s (held: %v) has %v, want %v", step, name, settled.Held, got, want)
					}
					was[name] = got
				}
				live = settled.Snapshot
				edit(random, all)
			}
		})
	}
	if heldSome < 50 || heldTwo < 20 {
		t.Errorf("folders were held %d times, several folders %d times", heldSome, heldTwo)
	}
}

// edit makes a random edit.
func edit(random *rand.Rand, all map[string]folder) {
	name := "teams/" + string(rune('a'+random.IntN(4)))
	switch f := all[name]; random.IntN(6) {
	case 0:
		delete(all, name)
	case 1, 2:
		all[name] = folder{random.IntN(100), none}
	default:
		f.content, f.fault = random.IntN(100), random.IntN(faults)
		all[name] = f
	}
	if len(all) == 0 {
		all[name] = folder{}
	}
}

// write writes the folders of owners, and removes the others.
func write(t *testing.T, dir string, all map[string]folder) {
	t.Helper()
	err := os.RemoveAll(filepath.Join(dir, "teams"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "shared.yaml"), []byte("\"@type\": type.googleapis.com/envoy.service.runtime.v3.Runtime\nname: shared\n"), 0o644)
	}
	for name, f := range all {
		at := filepath.Join(dir, name)
		if err == nil {
			err = os.MkdirAll(at, 0o755)
		}
		for file, text := range f.files(filepath.Base(name)) {
			if err == nil {
				err = os.WriteFile(filepath.Join(at, file), []byte(text), 0o644)
			}
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// versions returns the resources of an owner with their versions.
func versions(of *xds.Snapshot, owner string) (list []string) {
	for _, r := range of.All() {
		if r.Owner == owner {
			list = append(list, version(r))
		}
	}
	return list
}

func version(r *xds.Resource) string { return r.Type.API + "/" + r.Name + " " + r.Version() }
