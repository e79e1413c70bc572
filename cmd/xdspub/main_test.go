package main

import (
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"xdspub/tools/unixhttp"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "write what the commands print into the scripts, and fail")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"xdspub": main, "faulty": faulty, "unprivileged": unprivileged, "mounted": mounted})
}

// TestScripts runs testdata/script. Each script starts in a new directory with src, a copy of the valid source
// tree testdata/tree.
func TestScripts(t *testing.T) {
	if *update {
		t.Error("scripts were updated: look at the difference and run again")
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", RequireExplicitExec: true, RequireUniqueNames: true, UpdateScripts: *update,
		Setup: func(e *testscript.Env) error {
			return errors.Join(
				os.CopyFS(filepath.Join(e.WorkDir, "src"), os.DirFS("testdata/tree")),
				os.CopyFS(filepath.Join(e.WorkDir, "own"), os.DirFS("../../examples/own-types/config")),
				os.CopyFS(filepath.Join(e.WorkDir, "kinds"), os.DirFS("../../examples/fleet/config")),
			)
		},
		Condition: condition,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "get": get, "listing": listing, "waitfor": waitFor,
		},
	})
}

// condition reports whether a condition of a script holds: [root] for root, [unprivileged] if a test may drop
// the rights of root over files, [mounts] if it may mount a file system, and [race] for a build with the race
// detector, which needs much memory.
func condition(name string) (bool, error) {
	switch name {
	case "root":
		return os.Geteuid() == 0, nil
	case "unprivileged":
		return exec.Command("unprivileged", "true").Run() == nil, nil
	case "mounts":
		return exec.Command("mounted", os.TempDir(), "size=64k", "true").Run() == nil, nil
	}
	if info, ok := debug.ReadBuildInfo(); ok && name == "race" {
		return slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}), nil
	}
	return false, fmt.Errorf("unknown condition %q", name)
}

// exits STATUS COMMAND ARG… runs a command that must end with the exit status.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS COMMAND ARG…")
	}
	status := 0
	err := ts.Exec(args[1], args[2:]...)
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		status = e.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if strconv.Itoa(status) != args[0] {
		ts.Fatalf("exit status %d, not %s", status, args[0])
	}
}

// get SOCKET PATH asks the HTTP server behind a Unix socket, and prints the status and the body.
func get(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: get SOCKET PATH")
	}
	r, err := unixhttp.Client(ts.MkAbs(args[0])).Get("http://localhost" + args[1])
	ts.Check(err)
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	ts.Check(err)
	fmt.Fprintf(ts.Stdout(), "%d %s", r.StatusCode, body)
}

// listing [-touch] DIR prints the mode and the path of each file in a directory. With -touch, listing also
// prints the hash, the inode and the time, of which each rewrite changes at least one.
func listing(ts *testscript.TestScript, neg bool, args []string) {
	touch := len(args) == 2 && args[0] == "-touch"
	if neg || !touch && len(args) != 1 {
		ts.Fatalf("usage: listing [-touch] DIR")
	}
	root := os.DirFS(ts.MkAbs(args[len(args)-1]))
	err := fs.WalkDir(root, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		fmt.Fprint(ts.Stdout(), info.Mode(), " ", name)
		if touch {
			fmt.Fprint(ts.Stdout(), " ", info.Sys().(*syscall.Stat_t).Ino, " ", info.ModTime().UnixNano())
		}
		if touch && info.Mode().IsRegular() {
			data, err := fs.ReadFile(root, name)
			if err != nil {
				return err
			}
			fmt.Fprintf(ts.Stdout(), " %x", sha256.Sum256(data))
		}
		fmt.Fprintln(ts.Stdout())
		return nil
	})
	ts.Check(err)
}

// waitFor FILE REGEXP waits until the text of a file matches. With !, waitFor waits until the text does not
// match or the file is missing.
func waitFor(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: [!] waitfor FILE REGEXP")
	}
	wanted, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		data, err := os.ReadFile(ts.MkAbs(args[0]))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			ts.Fatalf("%v", err)
		}
		if (err == nil && wanted.Match(data)) != neg {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("waited in vain; the file holds:\n%s", data)
		}
	}
}
