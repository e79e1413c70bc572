package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"html"
	"io/fs"
	"net/http"
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

	"xdspub/tools/envoytest"
	"xdspub/tools/etcdtest"
	"xdspub/tools/golden"
	"xdspub/watch/control"
)

// statesOf is testdata/states.yaml.
type statesOf struct {
	Watch []watchState
	Serve []servedState
}

// state is a state of a watch or of a serve.
type state struct {
	State, Means string
	// Broken means that views must report a fault in the state.
	Broken bool
	// Unknown is the reason why a view can't report the fault.
	Unknown string
	// Unseen is the reason why a running watch does not know the fault yet.
	Unseen string
	// OfClient means that a client of a serve is at fault, not the server: /readyz is about the server.
	OfClient bool `json:"of_client"`
}

// watchState is a row of the table of a watch.
type watchState struct {
	state           `json:",inline"`
	Out             *cell
	Src             *cell
	JSON            *cell `json:"json"`
	Log             *cell
	Socket          *cell
	Readyz, Metrics *cell
	// Run is the row of docs/runbook.md about the state; nil for none.
	Run *advice
}

// servedState is a row of the table of a serve.
type servedState struct {
	state   `json:",inline"`
	Status  *cell
	JSON    *cell `json:"json"`
	Log     *cell
	Readyz  *cell
	Livez   *cell
	Health  *cell
	Metrics *cell
	CSDS    *cell `json:"csds"`
}

// cell is the output of one view in a state.
type cell struct {
	Exit  *int // of status
	Code  *int // of HTTP; 0 if nobody answers
	Shows []string
}

// number returns the exit status or the code; nil if the view has none.
func (c *cell) number() *int { return cmp.Or(c.Exit, c.Code) }

// cells returns the views of a row.
func (s *watchState) cells() []namedCell {
	return []namedCell{{"`status --out OUT`", s.Out}, {statusOfSource, s.Src}, {"`status --out OUT --format json`", s.JSON}, {"log", s.Log}, {"`GET /v1/watch`", s.Socket},
		{"`/readyz`", s.Readyz}, {"`/metrics`", s.Metrics}}
}

// statusOfSource is the only view of status that always knows the source tree.
const statusOfSource = "`status --out OUT SRC`"

// cells returns the views of a row.
func (s *servedState) cells() []namedCell {
	return []namedCell{
		{"`status --serve ADDR`", s.Status}, {"`status --serve ADDR --format json`", s.JSON}, {"log", s.Log}, {"`/readyz`", s.Readyz}, {"`/livez`", s.Livez},
		{"gRPC health", s.Health}, {"`/metrics`", s.Metrics}, {"CSDS", s.CSDS},
	}
}

type namedCell struct {
	view string
	*cell
}

func statesTable(t *testing.T) (table statesOf) {
	t.Helper()
	text, err := os.ReadFile("testdata/states.yaml")
	if err == nil {
		err = yaml.UnmarshalStrict(text, &table)
	}
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// makeState has, by name, the functions that make the states of a watch in testdata/states.yaml.
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
	"paused": func(t *testing.T, s *fixture) {
		s.startWatch(t)
		s.pause(t)
		s.write(t, "blue.yaml", aCluster("green"))
		s.watch.WaitLog(t, "event=snapshot-waits")
	},
	"paused, rendered": func(t *testing.T, s *fixture) {
		s.publish(t)
		s.pause(t)
	},
	"frozen": func(t *testing.T, s *fixture) {
		s.startWatch(t)
		s.write(t, "xdspub.yaml", "freeze: [{from: 2020-01-01 0:00, to: 2099-01-01 0:00, zone: UTC, reason: a test}]")
		s.watch.WaitLog(t, "event=frozen ")
		s.write(t, "blue.yaml", aCluster("green"))
		s.watch.WaitLog(t, "event=snapshot-waits")
	},
	"pinned": func(t *testing.T, s *fixture) {
		s.startWatch(t)
		s.write(t, "blue.yaml", aCluster("green"))
		s.watch.WaitLog(t, "event=published ")
		s.rollback(t)
	},
	"pinned, invalid": func(t *testing.T, s *fixture) {
		s.startWatch(t)
		s.write(t, "blue.yaml", aCluster("green"))
		s.watch.WaitLog(t, "event=published ")
		s.write(t, "bad.yaml", "name: x")
		s.watch.WaitLog(t, "event=source-invalid")
		s.rollback(t)
	},
	"guarded": func(t *testing.T, s *fixture) {
		s.write(t, "edge.yaml", listener("edge", envoytest.FreePort(t), answering("edge")))
		s.startWatch(t)
		s.write(t, "edge.yaml", aCluster("green"))
		s.watch.WaitLog(t, "event=guarded")
	},
	"approved": func(t *testing.T, s *fixture) {
		s.write(t, "edge.yaml", listener("edge", envoytest.FreePort(t), answering("edge")))
		s.startWatch(t)
		s.write(t, "edge.yaml", aCluster("green"))
		s.watch.WaitLog(t, "event=guarded")
		s.pause(t)
		if output, exit := s.approve(t); exit != 1 {
			t.Fatal(exit, output)
		}
	},
	"on trial": func(t *testing.T, s *fixture) {
		s.args = append(s.args, "--confirm-within", "1h")
		s.startWatch(t)
		s.write(t, "blue.yaml", aCluster("green"))
		s.watch.WaitLog(t, "event=awaits-confirmation")
		s.write(t, "blue.yaml", aCluster("red"))
		s.watch.WaitLog(t, "event=snapshot-waits")
	},
	"overdue": func(t *testing.T, s *fixture) {
		s.publish(t)
		s.write(t, "blue.yaml", aCluster("green"))
		render := start(t, binary, slices.Concat([]string{"render", "--confirm-within", "1h"}, s.args, []string{s.src})...)
		render.WaitLog(t, "event=awaits-confirmation")
		render.Signal(t, syscall.SIGKILL)
		render.Wait(t)
		s.lapse(t)
	},
	"undo failed": func(t *testing.T, s *fixture) {
		s.args = append(s.args, "--confirm-within", "1h")
		s.startWatch(t)
		s.undoFails(t)
	},
	"decisions unknown": func(t *testing.T, s *fixture) {
		s.startWatch(t)
		if err := os.Mkdir(filepath.Join(s.out, ".xdspub", "operator.json"), 0o755); err != nil {
			t.Fatal(err)
		}
		s.write(t, "blue.yaml", aCluster("green"))
		s.watch.WaitLog(t, "event=failed")
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
	"control plane gone": func(t *testing.T, s *fixture) {
		socket := filepath.Join(socketDir(t), "plane")
		plane := start(t, watcher, "serve", "--grpc", "unix:"+socket, s.src)
		plane.WaitLog(t, "event=published ")
		tree := s.src
		s.src = "xds+unix:" + socket
		s.startWatch(t, "--node-id", "edge", "--max-stale", "1ms")
		s.src = tree
		plane.Signal(t, syscall.SIGKILL)
		plane.Wait(t)
		s.watch.WaitLog(t, "event=upstream-lost ")
	},
	"store gone": func(t *testing.T, s *fixture) {
		etcd, _ := s.startWriter(t)
		etcd.End(t)
		s.write(t, "blue.yaml", aCluster("green"))
		s.watch.WaitLog(t, "event=store-failed ")
	},
	"rollout waits": func(t *testing.T, s *fixture) { rolloutWaits(t, s) },
	"rollout taken back": func(t *testing.T, s *fixture) {
		store := rolloutWaits(t, s)
		if stdout, stderr, exit := xdspub(t, "rollout", "abort", "--store", store, "--reason", "a test"); exit != 0 {
			t.Fatalf("rollout abort: exit status %d\n%s%s", exit, stdout, stderr)
		}
		s.watch.WaitLog(t, "event=rollout-taken-back ")
	},
	"disk full": func(t *testing.T, s *fixture) {
		disk := filepath.Dir(s.out)
		s.src = filepath.Join(t.TempDir(), "src")
		s.write(t, "blue.yaml", aCluster("blue"))
		s.startIsolated(t, smallDisk(disk))
		fillDisk(t, s.watch, disk)
		s.out = fmt.Sprintf("/proc/%d/root%s", s.watch.cmd.Process.Pid, s.out)
		s.write(t, "blue.yaml", aCluster("green"+strings.Repeat("n", 8192)))
		s.watch.WaitLog(t, "event=failed")
	},
	"no permission": func(t *testing.T, s *fixture) {
		if os.Getuid() != 0 {
			t.Skip("NOT TESTED: only root can give a folder to somebody else")
		}
		// To a user of a namespace who is not its root, the modes of files apply.
		s.startUnshared(t, "--user", "--map-user=1000", "--map-group=1000")
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
	"restored from a backup": func(t *testing.T, s *fixture) {
		s.startWatch(t, "--rescan", "1h")
		backup := filepath.Join(t.TempDir(), "backup")
		copyTree(t, s.out, backup)
		s.write(t, "blue.yaml", aCluster("green"))
		s.watch.WaitLog(t, "event=published ")
		s.watch.Signal(t, syscall.SIGHUP) // after this pass, no other pass is due
		s.watch.WaitLog(t, "event=unchanged ")
		copyTree(t, backup, s.out)
	},
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
	"certificate expires soon, rendered": func(t *testing.T, s *fixture) {
		s.writeCertificate(t, time.Now().Add(time.Hour))
		s.publish(t)
	},
	"restored from a backup, rendered": func(t *testing.T, s *fixture) {
		s.publish(t)
		backup := filepath.Join(t.TempDir(), "backup")
		copyTree(t, s.out, backup)
		s.write(t, "blue.yaml", aCluster("green"))
		s.publish(t)
		copyTree(t, backup, s.out)
	},
	"Envoy in sync": func(t *testing.T, s *fixture) { watchEnvoy(t, s) },
	"Envoy down": func(t *testing.T, s *fixture) {
		watchEnvoy(t, s)
		s.envoy.Stop(t)
		s.watch.WaitLog(t, "event=envoy-unreachable")
	},
	"invalid, Envoy down": func(t *testing.T, s *fixture) {
		watchEnvoy(t, s)
		s.write(t, "bad.yaml", "name: x")
		s.watch.WaitLog(t, "event=source-invalid")
		s.envoy.Stop(t)
		s.watch.WaitLog(t, "event=envoy-unreachable")
	},
	"changed by hand, killed, newer": func(t *testing.T, s *fixture) {
		editPublished(t, s)
		s.watch.Signal(t, syscall.SIGKILL)
		s.watch.Wait(t)
		s.write(t, "blue.yaml", aCluster("green"))
	},
	"settings broken, ended": func(t *testing.T, s *fixture) {
		s.startWatch(t)
		s.write(t, "xdspub.yaml", "no-such-setting: 7")
		s.watch.WaitLog(t, "event=failed")
		s.watch.Signal(t, syscall.SIGTERM)
		s.watch.Wait(t)
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
	"Envoy restarted with older files": func(t *testing.T, s *fixture) {
		envoytest.Binary(t)
		older := filepath.Join(t.TempDir(), "older")
		s.args = append(s.args, "--envoy-path", older)
		s.publish(t)
		copyTree(t, s.out, older)
		s.write(t, "blue.yaml", aCluster("green"))
		s.startWatch(t, "--rescan", "500ms", "--ack-timeout", "1s", "--envoy-admin", adminURL(t, s.reader(t)))
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

// startWriter starts an etcd, and the watch as the writer of a store there.
func (s *fixture) startWriter(t *testing.T) (etcd *etcdtest.Server, store string) {
	t.Helper()
	etcd = etcdtest.Start(t)
	store = "etcd://" + etcd.Endpoint + "/fleet"
	s.startWatch(t, "--store", store)
	s.watch.WaitLog(t, "event=store-published ")
	return etcd, store
}

// rolloutWaits begins a rollout that waits, because the only machine lacks the label of the first wave.
func rolloutWaits(t *testing.T, s *fixture) (store string) {
	t.Helper()
	s.write(t, "xdspub.yaml", "rollout: {waves: [{label: tier=canary}]}")
	_, store = s.startWriter(t)
	machine := newFixture(t, nil, "--machine", "m1")
	machine.src = store
	machine.startWatch(t)
	envoytest.Eventually(t, patience, "the machine is in sync", func() (bool, string) {
		stdout, stderr, exit := xdspub(t, "status", "--store", store)
		return exit == 0 && strings.HasPrefix(stdout, "in sync: 1 machine\n"), stdout + stderr
	})
	s.write(t, "blue.yaml", aCluster("green"))
	s.watch.WaitLog(t, "event=rollout-waits ")
	return store
}

// pause pauses the output directory.
func (s *fixture) pause(t *testing.T) {
	t.Helper()
	if _, stderr, exit := xdspub(t, "pause", "--out", s.out, "--reason", "a test"); exit != 0 {
		t.Fatalf("pause: exit status %d\n%s", exit, stderr)
	}
}

// undoFails has an operator cancel a change on trial, after somebody has removed the history.
func (s *fixture) undoFails(t *testing.T) {
	t.Helper()
	s.write(t, "blue.yaml", aCluster("green"))
	s.watch.WaitLog(t, "event=awaits-confirmation")
	if err := os.RemoveAll(filepath.Join(s.out, ".xdspub", "history")); err != nil {
		t.Fatal(err)
	}
	if stdout, stderr, exit := xdspub(t, "cancel", "--out", s.out); exit != 1 {
		t.Fatalf("cancel: exit status %d\n%s%s", exit, stdout, stderr)
	}
	s.watch.WaitLog(t, "event=undo-failed")
}

// writeCertificate writes a cluster with a certificate that is valid from 30 days ago.
func (s *fixture) writeCertificate(t *testing.T, until time.Time) {
	t.Helper()
	s.write(t, "blue.yaml", documents(certificate("client", datedPair(t, "client", time.Now().AddDate(0, 0, -30), until)), staticCluster("blue", 1, upstreamTLS("client"))))
}

// copyTree replaces the files of the folder to by those of the folder from. Sockets and the lock of to stay.
func copyTree(t *testing.T, from, to string) {
	t.Helper()
	_ = filepath.WalkDir(to, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && e.Name() != "lock" {
			return os.Remove(path)
		}
		return nil
	})
	err := filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		below, _ := filepath.Rel(from, path)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(filepath.Join(to, below)), 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(to, below), text, 0o600)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func aCluster(name string) string { return staticCluster(name, 1) }

func hang(t *testing.T, s *fixture) {
	s.startWatch(t)
	envoytest.Eventually(t, patience, "the end of the pass", func() (bool, string) {
		w, err := control.Ask(t.Context(), s.out)
		return err == nil && w.Running == nil && w.Last != nil, fmt.Sprint(w, err)
	})
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

// startIsolated starts the watch in new namespaces for users and mounts, in which the shell command first runs
// before the watch.
func (s *fixture) startIsolated(t *testing.T, first string) {
	t.Helper()
	s.startUnshared(t, isolated(first)...)
}

// startUnshared starts the watch by unshare with args.
func (s *fixture) startUnshared(t *testing.T, args ...string) {
	t.Helper()
	s.watch = startUnshared(t, args, slices.Concat([]string{watcher, "watch"}, s.args, s.operations(), []string{s.src})...)
	s.watch.WaitLog(t, "event=published ")
}

// isolated returns the arguments of unshare for new namespaces of users and mounts, in which the shell command
// first runs before the program.
func isolated(first string) []string {
	return []string{"-Urm", "sh", "-c", first + ` && exec "$0" "$@"`}
}

// startUnshared starts a program by unshare with args. It skips the test if this user can't make namespaces.
func startUnshared(t *testing.T, args []string, program ...string) *process {
	t.Helper()
	if exec.Command("unshare", "-Urm", "sh", "-c", "echo 1 > /proc/sys/user/max_inotify_instances && mount -t tmpfs tmpfs /tmp").Run() != nil {
		t.Skip("NOT TESTED: needs namespaces of users")
	}
	return start(t, "unshare", append(args, program...)...)
}

// smallDisk returns a shell command that mounts a small disk at a folder.
func smallDisk(at string) string { return fmt.Sprintf("mount -t tmpfs -o size=300k tmpfs '%s'", at) }

// fillDisk writes into a folder of the file system of a process until the disk is full.
func fillDisk(t *testing.T, p *process, folder string) {
	t.Helper()
	full, err := os.Create(filepath.Join(fmt.Sprintf("/proc/%d/root", p.cmd.Process.Pid), folder, "ballast"))
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	for err == nil {
		_, err = full.Write(make([]byte, 4096))
	}
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

// TestStates makes each state of a watch in testdata/states.yaml, and looks at each of its views.
func TestStates(t *testing.T) {
	t.Parallel()
	rows := statesTable(t).Watch
	if len(rows) != len(makeState) {
		t.Errorf("testdata/states.yaml has %d states of a watch, and the test makes %d", len(rows), len(makeState))
	}
	for _, row := range rows {
		t.Run(row.State, func(t *testing.T) {
			complete(t, row.state, row.cells())
			t.Parallel()
			s := newFixture(t, map[string]string{"blue.yaml": aCluster("blue")})
			if makeState[row.State] == nil {
				t.Fatal("no function makes this state")
			}
			s.http = filepath.Join(socketDir(t), "h.sock")
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
			row.Readyz.holds(t, "/readyz", func() (string, int) { return getUnix(s.http, "/readyz") })
			row.Metrics.holds(t, "/metrics", func() (string, int) { return getUnix(s.http, "/metrics") })
			sameFaults(t, s.http)
			if row.Run != nil {
				s.heed(t, *row.Run)
			}
		})
	}
}

// sameFaults fails the test if /readyz, the API and the page name different faults.
func sameFaults(t *testing.T, socket string) {
	t.Helper()
	envoytest.Eventually(t, patience, "/readyz, /api/v1/status and the page", func() (bool, string) {
		text, code := getUnix(socket, "/readyz")
		body, _ := getUnix(socket, "/api/v1/status")
		page, _ := getUnix(socket, "/")
		if code == 0 {
			return true, ""
		}
		var is struct {
			Ready   bool
			Targets []struct{ Faults []string }
			Clients struct{ Faults []string }
		}
		if err := json.Unmarshal([]byte(body), &is); err != nil || len(is.Targets) != 1 {
			return false, fmt.Sprint(err, body)
		}
		faults := slices.Concat(is.Targets[0].Faults, is.Clients.Faults)
		same := (code == http.StatusOK) == is.Ready && strings.Contains(page, "Not ready") != is.Ready
		for _, line := range strings.Split(strings.TrimSpace(text), "\n")[1:] {
			same = same && slices.Contains(faults, line)
		}
		for _, fault := range is.Targets[0].Faults {
			same = same && strings.Contains(text, fault) && strings.Contains(page, html.EscapeString(fault))
		}
		well := strings.Contains(page, "The source tree is published")
		return same && well == (is.Ready && len(faults) == 0), text + body + page
	})
}

// complete fails the test if a row has no entry for a view, or if a view reports no fault in a broken state.
func complete(t *testing.T, s state, cells []namedCell) {
	t.Helper()
	for _, c := range cells {
		ofStatus, ofHTTP := strings.HasPrefix(c.view, "`status"), strings.HasPrefix(c.view, "`/")
		switch {
		case c.cell == nil || c.Shows == nil || (ofStatus || ofHTTP) && c.number() == nil || ofStatus && len(c.Shows) == 0:
			t.Fatalf("testdata/states.yaml has no entry for the view %s", c.view)
		case !s.Broken || s.Unknown != "" && c.view != statusOfSource:
		case ofStatus && *c.Exit == 0:
			t.Errorf("%s exits 0 in a state that is broken", c.view)
		case c.view == "`/readyz`" && !s.OfClient && s.Unseen == "" && *c.Code == http.StatusOK && slices.Equal(c.Shows, []string{"ok\n"}):
			t.Errorf("%s says that all is well in a state that is broken", c.view)
		}
	}
}

// holds waits until a view shows the output of a cell.
func (c *cell) holds(t *testing.T, view string, look func() (text string, number int)) {
	t.Helper()
	envoytest.Eventually(t, patience, view, func() (bool, string) {
		text, number := look()
		fits := c.number() == nil || number == *c.number()
		for _, want := range c.Shows {
			fits = fits && strings.Contains(text, want)
		}
		return fits, fmt.Sprintf("%d, want %+v:\n%s", number, c, text)
	})
}

// TestStatesPage compares docs/reference/states.md with testdata/states.yaml.
func TestStatesPage(t *testing.T) {
	table := statesTable(t)
	var b strings.Builder
	code := strings.NewReplacer("~", "`") // in the page
	b.WriteString(code.Replace(`# States and views

For everyone who monitors xdspub. After reading this page you know the output of each view in each state. Tests make
each state with real processes (e2e/testdata/states.yaml).

A cell has texts that the view prints. ~…~ stands for the reason, in the words of the first view.

| view | how to read a cell |
|---|---|
| the first | exit status 0 if it says "in sync", 1 if it says "not in sync"; otherwise the cell begins with the exit status |
| ~status~ with SRC | an empty cell: exit status and first line of the first view, and ~is published~ if the exit status is 0 |
| ~status --format json~ | exit status of the first view, and ~"in_sync"~ with ~true~ or ~false~ |
| others | an empty cell: as in the first row. A status code other than 200 stands first |

In a broken state no view of ~status~ says "in sync" or exits with 0, and ~/readyz~ says more than ok, unless the table
says why the view can't know.

## A watch and its output directory

A ~watch~ opens no port without ~--http~. [Monitoring](../monitoring.md) explains ~/readyz~ and ~/metrics~. If no watch
answers, both have no answer.

`))
	for i := range table.Watch {
		writeState(&b, table.Watch[i].state, table.Watch[i].cells(), table.Watch[0].cells(), i == 0)
	}
	b.WriteString(code.Replace(`
## A serve

If ~/readyz~ answers, ~/livez~ answers ~ok~, and gRPC health ~SERVING~, or ~NOT_SERVING~ if ~/readyz~ answers 503. No
client changes these three. If the source tree becomes invalid, the server continues with the last valid snapshot.

`))
	for i := range table.Serve {
		s := &table.Serve[i]
		s.checkHealth(t)
		writeState(&b, s.state, s.columns(), table.Serve[0].columns(), i == 0)
	}
	golden.Compare(t, "../../docs/reference/states.md", b.String())
}

// checkHealth fails the test if /livez or the health service of gRPC has another answer than the page has for all
// states.
func (s *servedState) checkHealth(t *testing.T) {
	t.Helper()
	code, body, health := http.StatusOK, []string{"ok\n"}, "is SERVING"
	switch *s.Readyz.Code {
	case 0:
		code, body, health = 0, []string{}, "no answer"
	case http.StatusServiceUnavailable:
		health = "is NOT_SERVING"
	}
	if *s.Livez.Code != code || !slices.Equal(s.Livez.Shows, body) || !slices.Equal(s.Health.Shows, []string{health}) {
		t.Errorf("%s: /livez is %d %q and gRPC health %q; docs/reference/states.md says %d %q and %q",
			s.State, *s.Livez.Code, s.Livez.Shows, s.Health.Shows, code, body, health)
	}
}

// columns returns the views that have a column in the page.
func (s *servedState) columns() []namedCell {
	return slices.DeleteFunc(s.cells(), func(c namedCell) bool { return c.cell == s.Livez || c.cell == s.Health })
}

// writeState writes a row of a table, and the head of the table before the first row.
func writeState(b *strings.Builder, s state, cells, usual []namedCell, first bool) {
	if first {
		b.WriteString("| state |")
		for _, c := range cells {
			fmt.Fprintf(b, " %s |", c.view)
		}
		b.WriteString("\n|---" + strings.Repeat("|---", len(cells)) + "|\n")
	}
	fmt.Fprintf(b, "| **%s**", s.State)
	if means := strings.Join(slices.DeleteFunc([]string{s.Means, s.Unknown, s.Unseen}, func(text string) bool { return text == "" }), "; "); means != "" {
		b.WriteString(": " + means)
	}
	for i, c := range cells {
		switch {
		case i == 0:
			fmt.Fprintf(b, " | %s", c.headline().markdown(nil))
		case strings.HasPrefix(c.view, "`status"):
			fmt.Fprintf(b, " | %s", c.beside(cells[0].cell))
		case !first && c.isWithin(usual[i].cell):
			b.WriteString(" | ")
		default:
			fmt.Fprintf(b, " | %s", c.markdown(cells[0].cell))
		}
	}
	b.WriteString(" |\n")
}

// headline returns the first line of a view of status, if the cell shows where the line ends.
func (c *cell) headline() *cell {
	for i, text := range c.Shows {
		if line, _, ended := strings.Cut(text, "\n"); ended {
			return &cell{Exit: c.Exit, Shows: append(slices.Clone(c.Shows[:i]), line)}
		}
	}
	return c
}

// isWithin reports whether the page may leave the cell empty, because usual, the cell of the first row, has all its
// texts.
func (c *cell) isWithin(usual *cell) bool {
	missing := func(text string) bool { return !slices.Contains(usual.Shows, text) }
	return len(c.Shows) > 0 && (c.Code == nil || *c.Code == *usual.Code) && !slices.ContainsFunc(c.Shows, missing)
}

// beside returns the texts of a view of status that the first view of status lacks.
func (c *cell) beside(first *cell) string {
	same := *c.Exit == *first.Exit
	rest := cell{Shows: slices.DeleteFunc(slices.Clone(c.Shows), func(text string) bool {
		switch text {
		case `"in_sync": true`, " is published\n":
			return same && *c.Exit == 0
		case `"in_sync": false`:
			return same && *c.Exit == 1
		}
		return same && strings.Contains(first.Shows[0], strings.TrimSpace(text))
	})}
	if !same {
		rest.Exit = c.Exit
	} else if len(rest.Shows) == 0 {
		return ""
	}
	return rest.markdown(first)
}

// markdown returns the text of a cell, in which … stands for a text of the first view.
func (c *cell) markdown(first *cell) string {
	var parts []string
	var reason string // in the first line of the first view
	if first != nil {
		reason, _, _ = strings.Cut(strings.TrimPrefix(first.Shows[0], "not in sync: "), "\n")
	}
	switch {
	case c.Code != nil && *c.Code == 0:
		return "no answer"
	case c.Code != nil && *c.Code != http.StatusOK:
		parts = append(parts, fmt.Sprint(*c.Code))
	case c.Exit == nil, *c.Exit == 0 && strings.HasPrefix(c.Shows[0], "in sync"), *c.Exit == 1 && strings.HasPrefix(c.Shows[0], "not in sync"):
	default:
		parts = append(parts, fmt.Sprint(*c.Exit))
	}
	for _, text := range c.Shows {
		text = strings.TrimSpace(text)
		if unquoted := strings.Trim(text, `"`); first != nil && strings.Contains(unquoted, " ") && strings.Contains(strings.Join(first.Shows, "\n"), unquoted) {
			parts = append(parts, "…")
			continue
		}
		if strings.Count(reason, " ") > 1 {
			text = strings.NewReplacer("not in sync: "+reason, "…", reason, "…").Replace(text)
		}
		parts = append(parts, "`"+strings.ReplaceAll(text, "\n", " ")+"`")
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(slices.Compact(parts), " ")
}
