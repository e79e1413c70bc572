package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"xdspub/control"
	"xdspub/internal/envoytest"
	"xdspub/internal/golden"
)

// worldState is a row of testdata/states.yaml.
type worldState struct {
	State, Means string
	// Broken means that a person would call the state broken.
	Broken bool
	// Unknown is why a view of status can't know that.
	Unknown string
	Out     *cell
	Src     *cell
	JSON    *cell `json:"json"`
	Log     *cell
	Socket  *cell
}

// cell is what one view shows of a state.
type cell struct {
	Exit  *int // of status
	Shows []string
}

// cells returns the views of a row, by name.
func (s *worldState) cells() []namedCell {
	return []namedCell{{"status --out OUT", s.Out}, {"status --out OUT SRC", s.Src}, {"status --format json", s.JSON}, {"log", s.Log}, {"control socket", s.Socket}}
}

type namedCell struct {
	view string
	*cell
}

func worldStates(t *testing.T) (list []worldState) {
	t.Helper()
	text, err := os.ReadFile("testdata/states.yaml")
	if err == nil {
		err = yaml.UnmarshalStrict(text, &list)
	}
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// makeState makes the states of testdata/states.yaml.
var makeState = map[string]func(t *testing.T, s *fixture){
	"running": func(t *testing.T, s *fixture) {
		s.startWatch(t)
		opensNoPort(t, s.watch.cmd.Process.Pid)
	},
	"ended": func(t *testing.T, s *fixture) {
		s.startWatch(t)
		s.watch.Signal(t, syscall.SIGTERM)
		s.watch.Wait(t)
	},
	"ended, then rendered": func(t *testing.T, s *fixture) {
		s.startWatch(t)
		s.watch.Signal(t, syscall.SIGTERM)
		s.watch.Wait(t)
		s.publish(t)
	},
	"killed": func(t *testing.T, s *fixture) {
		s.startWatch(t)
		s.watch.Signal(t, syscall.SIGKILL)
		s.watch.Wait(t)
	},
	"hung": hang,
	"newer, hung": func(t *testing.T, s *fixture) {
		hang(t, s)
		s.write(t, "blue.yaml", aCluster("green"))
	},
	"newer, rendered": func(t *testing.T, s *fixture) {
		s.publish(t)
		s.write(t, "blue.yaml", aCluster("green"))
	},
	"invalid": func(t *testing.T, s *fixture) {
		s.startWatch(t)
		s.write(t, "bad.yaml", "name: x")
		s.watch.WaitLog(t, "event=source-invalid")
	},
	"settings broken": func(t *testing.T, s *fixture) {
		s.startWatch(t)
		s.write(t, "xdspub.yaml", "no-such-setting: 7")
		s.watch.WaitLog(t, "event=failed")
	},
	"disk full": func(t *testing.T, s *fixture) {
		disk := filepath.Dir(s.out)
		s.src = filepath.Join(t.TempDir(), "src")
		s.write(t, "blue.yaml", aCluster("blue"))
		s.startIsolated(t, fmt.Sprintf("mount -t tmpfs -o size=300k tmpfs '%s'", disk))
		s.out = fmt.Sprintf("/proc/%d/root%s", s.watch.cmd.Process.Pid, s.out)
		full, err := os.Create(filepath.Join(filepath.Dir(s.out), "ballast"))
		if err != nil {
			t.Fatal(err)
		}
		defer full.Close()
		for err == nil { // until there is no space
			_, err = full.Write(make([]byte, 4096))
		}
		s.write(t, "blue.yaml", aCluster("green"+strings.Repeat("n", 8192)))
		s.watch.WaitLog(t, "event=failed")
	},
	"no permission": func(t *testing.T, s *fixture) {
		if os.Getuid() != 0 {
			t.Skip("NOT TESTED: only root can give a folder to somebody else")
		}
		// To a user of a namespace who is not its root, the modes of files apply.
		s.startUnshared(t, "--user", "--map-user=1000", "--map-group=1000", watcher)
		if err := os.Chown(filepath.Join(s.out, "cds"), 12345, 12345); err != nil {
			t.Fatal(err)
		}
		s.write(t, "blue.yaml", aCluster("green"))
		s.watch.WaitLog(t, "event=failed")
	},
	"no inotify instances": func(t *testing.T, s *fixture) {
		s.startIsolated(t, "echo 0 > /proc/sys/user/max_inotify_instances")
	},
	"changed by hand": editPublished,
	"mended": func(t *testing.T, s *fixture) {
		editPublished(t, s)
		s.watch.Signal(t, syscall.SIGHUP)
		s.watch.WaitLog(t, "event=drift-mended")
	},
	"certificate expires soon": func(t *testing.T, s *fixture) {
		s.writeCertificate(t, time.Now().Add(time.Hour))
		s.startWatch(t)
	},
	"certificate has expired": func(t *testing.T, s *fixture) {
		s.writeCertificate(t, time.Now().Add(-time.Hour))
		s.startWatch(t)
	},
	"certificate has expired, rendered": func(t *testing.T, s *fixture) {
		s.writeCertificate(t, time.Now().Add(-time.Hour))
		s.publish(t)
	},
	"Envoy in sync": func(t *testing.T, s *fixture) { watchEnvoy(t, s) },
	"Envoy down": func(t *testing.T, s *fixture) {
		watchEnvoy(t, s)
		s.envoy.Stop(t)
		s.watch.WaitLog(t, "event=envoy-unreachable")
	},
	"Envoy behind": func(t *testing.T, s *fixture) {
		watchEnvoy(t, s, "--ack-timeout", "1s")
		folder := filepath.Join(s.out, "cds")
		if err := os.Rename(folder, folder+".old"); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(folder + ".old"); err != nil {
			t.Fatal(err)
		}
		s.write(t, "blue.yaml", aCluster("green"))
		s.watch.WaitLog(t, "event=file-not-applied")
	},
	"Envoy runs other files": func(t *testing.T, s *fixture) {
		envoytest.Binary(t)
		other := newFixture(t, map[string]string{"blue.yaml": aCluster("blue")})
		other.publish(t)
		s.beginWatch(t, "--envoy-admin", adminURL(t, other.reader(t)))
		s.watch.WaitLog(t, "event=envoy-unknown")
	},
	"held": func(t *testing.T, s *fixture) {
		busy, _ := takePort(t)
		watchEnvoy(t, s)
		s.write(t, "busy.yaml", documents(routes("main", "blue"), listener("edge", busy, rds("main"))))
		s.watch.WaitLog(t, "code=refused-by-envoy")
	},
}

// writeCertificate writes a cluster with a certificate that is valid from 30 days ago.
func (s *fixture) writeCertificate(t *testing.T, until time.Time) {
	t.Helper()
	s.write(t, "blue.yaml", documents(certificate("client", datedPair(t, "client", time.Now().AddDate(0, 0, -30), until)), staticCluster("blue", 1, upstreamTLS("client"))))
}

func aCluster(name string) string { return staticCluster(name, 1) }

func hang(t *testing.T, s *fixture) {
	s.startWatch(t)
	s.watch.Signal(t, syscall.SIGSTOP)
	pid := s.watch.cmd.Process.Pid
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
}

func editPublished(t *testing.T, s *fixture) {
	s.startWatch(t, "--rescan", "1h")
	if err := os.WriteFile(filepath.Join(s.out, "cds/cds.json"), []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// watchEnvoy publishes the tree, and starts an Envoy that reads it and a watch that asks the Envoy.
func watchEnvoy(t *testing.T, s *fixture, args ...string) {
	envoytest.Binary(t)
	s.publish(t)
	s.envoy = s.reader(t)
	s.startWatch(t, append(args, "--rescan", "500ms", "--envoy-admin", adminURL(t, s.envoy))...)
	s.watch.WaitLog(t, "event=envoy-in-sync")
}

// startIsolated starts the watch in namespaces of its own for users and mounts, after a command of the shell.
func (s *fixture) startIsolated(t *testing.T, first string) {
	t.Helper()
	s.startUnshared(t, "-Urm", "sh", "-c", first+` && exec "$0" "$@"`, watcher)
}

// startUnshared starts the watch by unshare with these arguments, the last of which is the program.
func (s *fixture) startUnshared(t *testing.T, args ...string) {
	t.Helper()
	if exec.Command("unshare", "-Urm", "sh", "-c", "echo 1 > /proc/sys/user/max_inotify_instances && mount -t tmpfs tmpfs /tmp").Run() != nil {
		t.Skip("NOT TESTED: needs namespaces of users")
	}
	s.watch = start(t, "unshare", slices.Concat(args, []string{"watch"}, s.args, []string{s.src})...)
	s.watch.WaitLog(t, "event=published ")
}

// opensNoPort fails if a process listens on TCP.
func opensNoPort(t *testing.T, pid int) {
	t.Helper()
	tcp, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		t.Skip("NOT TESTED: /proc/net is Linux's")
	}
	tcp6, _ := os.ReadFile("/proc/net/tcp6")
	listens := regexp.MustCompile(`(?m)^ *\d+: \S+ \S+ 0A (?:\S+ ){3} *\d+ +\d+ (\d+) `)
	sockets := make(map[string]bool)
	for _, m := range listens.FindAllStringSubmatch(string(tcp)+string(tcp6), -1) {
		sockets["socket:["+m[1]+"]"] = true
	}
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil || len(fds) == 0 {
		t.Fatal(err, fds)
	}
	for _, fd := range fds {
		if to, _ := os.Readlink(fd); sockets[to] {
			t.Errorf("the watch listens on TCP: %s", to)
		}
	}
}

// TestStates makes each state of testdata/states.yaml, and looks at each of its views.
func TestStates(t *testing.T) {
	t.Parallel()
	rows := worldStates(t)
	if len(rows) != len(makeState) {
		t.Errorf("testdata/states.yaml has %d states, and the test makes %d", len(rows), len(makeState))
	}
	for _, row := range rows {
		t.Run(row.State, func(t *testing.T) {
			row.complete(t)
			t.Parallel()
			s := newFixture(t, map[string]string{"blue.yaml": aCluster("blue")})
			if makeState[row.State] == nil {
				t.Fatal("no function makes this state")
			}
			makeState[row.State](t, s)
			status := func(args ...string) func() (string, int) {
				return func() (string, int) {
					stdout, stderr, exit := xdspub(t, append([]string{"status", "--out", s.out}, args...)...)
					return stdout + stderr, exit
				}
			}
			row.Out.holds(t, "status --out OUT", status())
			row.Src.holds(t, "status --out OUT SRC", status(s.src))
			row.JSON.holds(t, "status --format json", status("--format", "json"))
			row.Log.holds(t, "log", func() (string, int) {
				if s.watch == nil {
					return "", 0
				}
				return s.watch.Log(), 0
			})
			row.Socket.holds(t, "control socket", func() (string, int) {
				w, err := control.Ask(t.Context(), s.out)
				if err != nil {
					return err.Error(), 0
				}
				text, err := json.MarshalIndent(w, "", "  ")
				return fmt.Sprint(string(text), err), 0
			})
		})
	}
}

// complete fails if a row has no entry for a view, or a view exits 0 in a broken state.
func (s *worldState) complete(t *testing.T) {
	t.Helper()
	for _, c := range s.cells() {
		ofStatus := strings.HasPrefix(c.view, "status")
		switch {
		case c.cell == nil || c.Shows == nil || ofStatus && (c.Exit == nil || len(c.Shows) == 0):
			t.Fatalf("testdata/states.yaml has no entry for the view %q", c.view)
		case !s.Broken || !ofStatus || *c.Exit != 0:
		case s.Unknown == "" || c.cell == s.Src:
			t.Errorf("%s exits 0 in a state that is broken", c.view)
		}
	}
}

// holds waits until a view shows what a cell says.
func (c *cell) holds(t *testing.T, view string, look func() (text string, exit int)) {
	t.Helper()
	envoytest.Eventually(t, patience, view, func() (bool, string) {
		text, exit := look()
		fits := c.Exit == nil || exit == *c.Exit
		for _, want := range c.Shows {
			fits = fits && strings.Contains(text, want)
		}
		return fits, fmt.Sprintf("exit status %d, want %v and %q:\n%s", exit, c.Exit, c.Shows, text)
	})
}

// TestStatesPage compares docs/reference/states.md with testdata/states.yaml.
func TestStatesPage(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# States and views

What each view shows in each state of the world, for a ` + "`watch`" + ` and its output directory. Each cell is tested with real
processes (e2e/testdata/states.yaml). A view of ` + "`status`" + ` begins with its exit status. In a broken state no view of
` + "`status`" + ` says "in sync" or exits 0, unless the table says why the view can't know.

` + "`status --serve`" + `, ` + "`/readyz`" + ` and gRPC health are views of a ` + "`serve`" + `: a ` + "`watch`" + ` opens no port.

| state | ` + "`status --out OUT`" + ` | ` + "`status --out OUT SRC`" + ` | ` + "`status --out OUT --format json`" + ` | log | ` + "`GET /v1/watch`" + ` |
|---|---|---|---|---|---|
`)
	for _, s := range worldStates(t) {
		means := s.Means
		if s.Unknown != "" {
			means += "; " + s.Unknown
		}
		fmt.Fprintf(&b, "| **%s**: %s", s.State, means)
		for _, c := range s.cells() {
			var parts []string
			if c.Exit != nil {
				parts = append(parts, fmt.Sprint(*c.Exit))
			}
			for _, text := range c.Shows {
				parts = append(parts, "`"+strings.TrimSpace(text)+"`")
			}
			if len(parts) == 0 {
				parts = []string{"nothing"}
			}
			fmt.Fprintf(&b, " | %s", strings.Join(parts, " "))
		}
		b.WriteString(" |\n")
	}
	golden.Compare(t, "../../docs/reference/states.md", b.String())
}
