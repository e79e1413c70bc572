package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"sigs.k8s.io/yaml"

	"xdspub/tools/envoytest"
)

// examined is the JSON of xdspub doctor.
type examined struct {
	Diagnostics []struct{ Code, Severity, File, Message, Help string }
	Summary     struct{ Checks, Errors, Warnings, Infos int }
	Fixed       []string
	Pruned      []string

	exit   int
	stderr string
}

// doctor runs xdspub doctor. A script, unless empty, runs first, as root of new namespaces of users and mounts.
func (s *fixture) doctor(t *testing.T, script string, args ...string) (r examined) {
	t.Helper()
	args = append([]string{"doctor", "--out", s.out, "--format", "json"}, args...)
	cmd := exec.Command(binary, args...)
	if script != "" {
		cmd = exec.Command("sh", append([]string{"-c", "set -e; " + script + `; exec "$0" "$@"`, binary}, args...)...)
		cmd.SysProcAttr = namespaces(strings.Contains(script, "/proc/sys/user/"))
		able := exec.Command("mount", "--make-rprivate", "/")
		if able.SysProcAttr = cmd.SysProcAttr; able.Run() != nil {
			t.Skip("NOT TESTED, the system lets no user make namespaces")
		}
	}
	cmd.Dir, cmd.Env = root, environment()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	r.exit, r.stderr = cmd.ProcessState.ExitCode(), stderr.String()
	if err := json.Unmarshal(stdout.Bytes(), &r); err != nil && r.exit < 2 {
		t.Fatalf("exit status %d, %v: %s%s", r.exit, err, stdout.Bytes(), stderr.Bytes())
	}
	return r
}

// namespaces returns the attributes of a process with its own mounts, and with its own limits of users. With these
// limits, the process does not see the descriptors of other processes.
func namespaces(limits bool) *syscall.SysProcAttr {
	if os.Geteuid() == 0 && !limits {
		return &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	}
	one := func(id int) []syscall.SysProcIDMap { return []syscall.SysProcIDMap{{HostID: id, Size: 1}} }
	return &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS, UidMappings: one(os.Geteuid()), GidMappings: one(os.Getegid()),
	}
}

// admins returns --envoy-admin for the Envoy of the fixture.
func (s *fixture) admins() []string { return []string{"--envoy-admin", "http://" + address(s.admin)} }

// faults returns the codes of the errors and warnings.
func (r examined) faults() (codes []string) {
	for _, d := range r.Diagnostics {
		if d.Severity != "info" {
			codes = append(codes, d.Code)
		}
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

// finds checks that doctor has found a fault, and says what to do about it. also are other codes of the same fault.
func (r examined) finds(t *testing.T, code, severity, message, help string, also ...string) {
	t.Helper()
	found := false
	for _, d := range r.Diagnostics {
		found = found || d.Code == code && d.Severity == severity && strings.Contains(d.Message, message) && strings.Contains(d.Help, help)
	}
	want := also
	if severity != "info" {
		want = append(want, code)
	}
	slices.Sort(want)
	if !found || !slices.Equal(r.faults(), want) {
		t.Errorf("no %s %s with %q and %q, or not the faults %v: exit status %d\n%+v\n%s", severity, code, message, help, want, r.exit, r.Diagnostics, r.stderr)
	}
	if wantExit := min(1, r.Summary.Errors); r.exit != wantExit {
		t.Errorf("exit status %d with %d errors", r.exit, r.Summary.Errors)
	}
}

// healthy checks that doctor has found nothing. It may be unable to see some processes of this machine.
func (r examined) healthy(t *testing.T) {
	t.Helper()
	for _, d := range r.Diagnostics {
		if d.Code != "not-examined" || !strings.Contains(d.Message, "are not visible") {
			t.Errorf("doctor finds %+v", d)
		}
	}
	if r.exit != 0 {
		t.Errorf("exit status %d: %s", r.exit, r.stderr)
	}
}

// doctored returns a fixture with a running watch and a running Envoy, with clusters, routes and a secret.
func doctored(t *testing.T, args ...string) *fixture {
	t.Helper()
	envoytest.Binary(t)
	edge := envoytest.FreePort(t)
	s := newFixture(t, map[string]string{
		"edge.yaml": documents(edsCluster("web"), endpoints("web", edge), routes("main", "web"), certificate("edge", newPair(t, "edge")),
			tlsListener("edge", edge, downstreamTLS("edge"), rds("main"))),
	}, append([]string{"--trim-delay", "100ms"}, args...)...)
	s.startWatch(t, s.admins()...)
	s.startEnvoy(t)
	return s
}

// withBootstrap restarts the Envoy of a fixture with a changed bootstrap.
func (s *fixture) withBootstrap(t *testing.T, change func(map[string]any)) {
	t.Helper()
	var bootstrap map[string]any
	stdout, stderr, exit := xdspub(t, "bootstrap", "envoy", "--out", s.out, "--admin", address(s.admin))
	if exit != 0 {
		t.Fatal(stderr)
	}
	if err := yaml.Unmarshal([]byte(stdout), &bootstrap); err != nil {
		t.Fatal(err)
	}
	change(bootstrap)
	text, err := json.Marshal(bootstrap)
	if err != nil {
		t.Fatal(err)
	}
	if s.envoy != nil {
		s.envoy.Stop(t)
	}
	s.envoy = envoytest.Start(t, envoytest.Options{Bootstrap: text})
}

// TestDoctorFindsNothing: a running watch and a running Envoy have no fault, and doctor disturbs nobody.
func TestDoctorFindsNothing(t *testing.T) {
	t.Parallel()
	s := doctored(t)
	before := s.published(t)
	s.doctor(t, "", s.src).healthy(t)
	s.doctor(t, "", append(s.admins(), s.src)...).healthy(t)
	if r := s.doctor(t, "", "--fix"); r.exit != 3 || !strings.Contains(r.stderr, "held by process") {
		t.Errorf("doctor --fix beside a watch: exit status %d: %s", r.exit, r.stderr)
	}
	if now := s.published(t); now != before {
		t.Errorf("doctor has changed files:\n%s\n%s", before, now)
	}
	s.edit(t, "edge.yaml", replace("type: EDS", "type: EDS, connect_timeout: 2s"))
	s.doctor(t, "").healthy(t)
}

// TestDoctorFinds makes each fault on purpose.
func TestDoctorFinds(t *testing.T) {
	envoytest.Binary(t)
	for name, find := range map[string]func(*testing.T){
		"too few instances": func(t *testing.T) {
			s := doctored(t)
			s.doctor(t, "echo 3 > /proc/sys/user/max_inotify_instances", "--envoy-user", "0:0").
				finds(t, "inotify-instances", "error", "needs 5 inotify instances", "sysctl user.max_inotify_instances=")
		},
		"too few instances for a hot restart": func(t *testing.T) {
			s := doctored(t)
			s.envoy.Stop(t)
			s.envoy = envoytest.Start(t, envoytest.Options{Bootstrap: s.bootstrap(t), Args: []string{"--base-id", envoytest.BaseID(t)}})
			s.doctor(t, "echo 7 > /proc/sys/user/max_inotify_instances", "--envoy-user", "0:0").
				finds(t, "inotify-instances", "warning", "a hot restart of Envoy needs 10", "sysctl user.max_inotify_instances=")
		},
		"too few watches": func(t *testing.T) {
			s := doctored(t)
			s.doctor(t, "echo 3 > /proc/sys/user/max_inotify_watches", "--envoy-user", "0:0").
				finds(t, "inotify-watches", "warning", "user.max_inotify_watches is 3", "raise the limit: sysctl user.max_inotify_watches=")
		},
		"few descriptors": func(t *testing.T) {
			s := doctored(t)
			open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.envoy.PID()))
			orFatal(t, err)
			limit := uint64(len(open) + 2)
			orFatal(t, unix.Prlimit(s.envoy.PID(), unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: limit, Max: 1024}, nil))
			s.doctor(t, "").finds(t, "descriptor-limit", "warning", fmt.Sprintf("of %d descriptors", limit), "LimitNOFILE=")
		},
		"a mount inside": func(t *testing.T) {
			s := newFixture(t, map[string]string{"web.yaml": documents(edsCluster("web"), endpoints("web", 1))})
			s.rendered(t)
			s.doctor(t, "mount --make-rprivate / && mount -t tmpfs -o size=64k none "+s.out+"/eds/web && echo '{}' > "+s.out+"/eds/web/eds.json").
				finds(t, "split-output", "error", "eds/web", "mount the whole output directory", "edited-file")
		},
		"another directory": func(t *testing.T) {
			if os.Geteuid() != 0 {
				t.Skip("NOT TESTED, needs root: the tests do not run as root")
			}
			s := doctored(t)
			s.doctor(t, "mount --make-rprivate / && cp -a "+s.out+" "+s.out+".copy && rm "+s.out+".copy/.xdspub/control.sock && mount --bind "+s.out+".copy "+s.out, s.admins()...).
				finds(t, "replaced-directory", "error", "sees another directory at "+s.out, "restart Envoy")
		},
		"a full disk": func(t *testing.T) {
			var many []string
			for i := range 200 {
				many = append(many, staticCluster(fmt.Sprintf("web%d", i), 1))
			}
			s := newFixture(t, map[string]string{"web.yaml": documents(many...)})
			onVolume := func(options, then string) string {
				return fmt.Sprintf("mount --make-rprivate / && mkdir -p %[1]s && mount -t tmpfs -o %[2]s none %[1]s && %[3]s render --quiet --out %[1]s %[4]s && %[5]s", s.out, options, binary, s.src, then)
			}
			s.doctor(t, onVolume("size=512k", "true")).finds(t, "output-space", "error", "full", "free space")
			s.doctor(t, onVolume("size=1200k", "true")).finds(t, "output-space", "warning", "nearly full", "free space")
			s.doctor(t, onVolume("size=8m,nr_inodes=24", "true")).finds(t, "output-space", "error", "inodes", "free space")
			s.doctor(t, onVolume("size=8m", "mount -o remount,ro "+s.out)).finds(t, "output-space", "error", "read-only", "mount it read-write")
		},
		"files that Envoy may not read": func(t *testing.T) {
			s := doctored(t)
			r := s.doctor(t, "", "--envoy-user", "4242:4242")
			r.finds(t, "envoy-access", "error", "sds/edge", "--group")
		},
		"a replaced directory": func(t *testing.T) {
			s := doctored(t)
			folder := filepath.Join(s.out, "rds/main")
			orFatal(t, os.Rename(folder, filepath.Join(s.out, "aside")))
			orFatal(t, os.CopyFS(folder, os.DirFS(filepath.Join(s.out, "aside"))))
			s.doctor(t, "").finds(t, "replaced-directory", "error", "does not watch rds/main", "restart this Envoy")
		},
		"a file edited in place": func(t *testing.T) {
			s := doctored(t, "--rescan", "10m")
			file := filepath.Join(s.out, "rds/main/rds.json")
			text, err := os.ReadFile(file)
			orFatal(t, err)
			orFatal(t, os.WriteFile(file, bytes.ReplaceAll(text, []byte("web"), []byte("api")), 0o644))
			s.doctor(t, "").finds(t, "edited-file", "error", "rds/main/rds.json", "publish the files again")
		},
		"no Envoy": func(t *testing.T) {
			s := doctored(t)
			s.envoy.Stop(t)
			s.doctor(t, "").finds(t, "envoy-silent", "error", "is down", "start Envoy")
		},
		"an admin interface that answers too little": func(t *testing.T) {
			s := doctored(t)
			s.withBootstrap(t, func(b map[string]any) {
				b["admin"].(map[string]any)["allow_paths"] = []any{map[string]any{"prefix": "/ready"}}
			})
			s.doctor(t, "").finds(t, "admin-too-closed", "error", "refuses /config_dump", "--admin-paths needed")
		},
		"an admin interface that answers too much": func(t *testing.T) {
			s := doctored(t)
			s.withBootstrap(t, func(b map[string]any) {
				b["admin"].(map[string]any)["address"].(map[string]any)["socket_address"].(map[string]any)["address"] = "0.0.0.0"
			})
			s.doctor(t, "").finds(t, "admin-too-open", "warning", "listens on 0.0.0.0", "--admin-paths needed")
		},
		"hidden statistics": func(t *testing.T) {
			s := doctored(t)
			s.withBootstrap(t, func(b map[string]any) {
				b["stats_config"] = map[string]any{"stats_matcher": map[string]any{"exclusion_list": map[string]any{"patterns": []any{map[string]any{"suffix": "update_success"}}}}}
			})
			s.doctor(t, "").finds(t, "hidden-statistics", "error", "update_success", "stats_config.stats_matcher")
		},
		"an Envoy of another directory": func(t *testing.T) {
			s, other := doctored(t), doctored(t)
			s.doctor(t, "", other.admins()...).finds(t, "other-files", "error", "reads no file below", "bootstrap of xdspub bootstrap envoy")
		},
		"an older Envoy": func(t *testing.T) {
			older := envoytest.Version(t, "1.38.3")
			s := newFixture(t, map[string]string{"web.yaml": staticCluster("web", 1, "circuit_breakers: {thresholds: [{retry_budget: {budget_interval: 0.05s}}]}")})
			s.startWatch(t)
			s.envoy = envoytest.Start(t, envoytest.Options{Bootstrap: s.bootstrap(t), Binary: older})
			s.doctor(t, "", s.admins()...).finds(t, "older-envoy", "error", "budget_interval", "--envoy-version 1.38")
		},
		"a clock": func(t *testing.T) {
			s := doctored(t)
			later := time.Now().Add(time.Hour)
			orFatal(t, os.Chtimes(filepath.Join(s.out, "rds/main/rds.json"), later, later))
			s.doctor(t, "").finds(t, "clocks-differ", "warning", "from the future", "synchronise the clocks")
		},
		"a certificate": func(t *testing.T) {
			s := doctored(t)
			s.edit(t, "edge.yaml", func(string) string {
				return documents(staticCluster("web", 1), routes("main", "web"), tlsListener("edge", envoytest.FreePort(t), downstreamTLS("edge"), rds("main")),
					certificate("edge", datedPair(t, "edge", time.Now().Add(-time.Hour), time.Now().Add(3*time.Minute))))
			})
			s.doctor(t, "").finds(t, "expired-certificate/expires-soon", "warning", "", "")
		},
		"a damaged record": func(t *testing.T) {
			s := newFixture(t, map[string]string{"web.yaml": staticCluster("web", 1)})
			s.rendered(t)
			orFatal(t, os.WriteFile(filepath.Join(s.out, ".xdspub/manifest.json"), []byte("{"), 0o600))
			s.doctor(t, "").finds(t, "damaged-output", "error", "manifest.json: damaged", "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			find(t)
		})
	}
}

// TestDoctorFixes: --fix removes what a killed watch has left, and nothing else.
func TestDoctorFixes(t *testing.T) {
	t.Parallel()
	s := newFixture(t, map[string]string{"web.yaml": staticCluster("web", 1)})
	s.startWatch(t)
	envoytest.Eventually(t, patience, "the history has the snapshot", func() (bool, string) { // it follows the event published
		entries, _ := filepath.Glob(filepath.Join(s.out, ".xdspub/history/*.entry"))
		staged, _ := filepath.Glob(filepath.Join(s.out, ".xdspub/stage/*"))
		return len(entries) == 1 && len(staged) == 0, fmt.Sprint(entries, staged)
	})
	s.watch.Signal(t, syscall.SIGKILL)
	s.watch.Wait(t)
	orFatal(t, os.WriteFile(filepath.Join(s.out, ".xdspub/stage/0001"), []byte("half"), 0o600))
	before := s.published(t)
	s.doctor(t, "").finds(t, "leftovers", "warning", "a killed process has left 1 file: .xdspub/stage/0001", "doctor --fix")
	s.doctor(t, "").finds(t, "leftovers", "warning", "a watch was killed", "start the watch again")
	r := s.doctor(t, "", "--fix")
	if want := []string{".xdspub/stage/0001", ".xdspub/control.sock"}; !slices.Equal(r.Fixed, want) {
		t.Errorf("fixed %v, want %v", r.Fixed, want)
	}
	if left := r.faults(); len(left) > 0 {
		t.Errorf("after --fix, doctor finds %v", r.Diagnostics)
	}
	if now := s.published(t); now != before {
		t.Errorf("--fix has changed published files:\n%s\n%s", before, now)
	}
	if r := s.doctor(t, "", "--fix"); len(r.Fixed) > 0 || r.exit != 0 {
		t.Errorf("the second --fix: %+v", r)
	}
}

// TestDoctorPrunes: --prune removes the folders of old names, unless an Envoy or a watch runs. An Envoy follows a name
// that comes back after that.
func TestDoctorPrunes(t *testing.T) {
	t.Parallel()
	envoytest.Binary(t)
	both := documents(edsCluster("a"), endpoints("a", 1), edsCluster("b"), endpoints("b", 1))
	s := newFixture(t, map[string]string{"edge.yaml": both}, "--trim-delay", "100ms")
	s.startWatch(t, s.admins()...)
	s.startEnvoy(t)
	s.edit(t, "edge.yaml", func(string) string { return documents(edsCluster("a"), endpoints("a", 1)) })
	s.watch.WaitLog(t, "event=trimmed")
	s.doctor(t, "").finds(t, "unused-folders", "info", "eds/b", "doctor --prune")
	refused := func(why string, args ...string) {
		t.Helper()
		if r := s.doctor(t, "", append([]string{"--prune"}, args...)...); r.exit != 3 || !strings.Contains(r.stderr, why) || len(r.Pruned) > 0 {
			t.Errorf("doctor --prune: exit status %d, pruned %v, and does not say %q: %s", r.exit, r.Pruned, why, r.stderr)
		}
	}
	refused("held by process")
	s.watch.Signal(t, syscall.SIGTERM)
	s.watch.Wait(t)
	refused("runs: stop it", s.admins()...)
	refused("watches the output directory: stop it") // by /proc
	s.envoy.Stop(t)
	r := s.doctor(t, "", append([]string{"--prune"}, s.admins()...)...)
	if want := []string{"eds/b"}; !slices.Equal(r.Pruned, want) {
		t.Errorf("pruned %v, want %v: %s", r.Pruned, want, r.stderr)
	}
	for _, folder := range r.Pruned {
		if _, err := os.Stat(filepath.Join(s.out, folder)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", folder, err)
		}
	}
	s.startWatch(t)
	s.startEnvoy(t)
	s.edit(t, "edge.yaml", func(string) string { return both })
	s.doctor(t, "", s.admins()...).healthy(t)
}

func orFatal(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// rendered publishes the source tree once.
func (s *fixture) rendered(t *testing.T) {
	t.Helper()
	if _, stderr, exit := xdspub(t, append(append([]string{"render"}, s.args...), s.src)...); exit != 0 {
		t.Fatal(stderr)
	}
}

// TestDoctorBundle: a bundle has what a bug report needs, and nothing of the content of resources, of secrets and of
// private settings. The canaries are in a secret, in a route, in a refused listener, in an edited file and in settings.
func TestDoctorBundle(t *testing.T) {
	t.Parallel()
	const canary = "canary-7c1d"
	s := doctored(t)
	pair := newPair(t, "edge")
	s.edit(t, "edge.yaml", func(text string) string {
		return strings.Replace(text, `name: "main"`, `name: "main", response_headers_to_add: [{header: {key: x, value: `+canary+`}}]`, 1)
	})
	s.write(t, "secret.yaml", documents(certificate("other", pair), document("envoy.extensions.transport_sockets.tls.v3.Secret",
		`name: token, generic_secret: {secret: {inline_string: %q}}`, canary)))
	s.watch.WaitLog(t, "event=published ")
	s.write(t, "refused.yaml", documents(staticCluster("bad", 1, fmt.Sprintf("metadata: {filter_metadata: {a: {b: %s}}}", canary), "nonsense: "+canary)))
	s.watch.WaitLog(t, "event=source-invalid")
	must := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		orFatal(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	config := must("config.yaml", "webhook: https://hooks.example/"+canary+"\ninotify-budget: 99\n")
	file := filepath.Join(t.TempDir(), "bundle.tar.gz")
	s.doctor(t, "", "--config", config, "--bundle", file)
	if r := s.doctor(t, "", "--bundle", file); r.exit != 3 || !strings.Contains(r.stderr, "file exists") {
		t.Errorf("a bundle takes the place of a file: %d, %s", r.exit, r.stderr)
	}
	all := unpacked(t, file)
	for name, text := range all {
		for _, secret := range []string{canary, strings.Split(pair.key, "\n")[1], "PRIVATE KEY", "CERTIFICATE"} {
			if strings.Contains(text, secret) {
				t.Errorf("%s has %q:\n%s", name, secret, text)
			}
		}
	}
	for name, wants := range map[string][]string{
		"README.txt":    {"read it before you send it"},
		"version.txt":   {"xdspub "},
		"settings.txt":  {"inotify-budget: 99", "webhook: …", "out: " + s.out},
		"findings.json": {`"diagnostics"`, `"checks": 21`},
		"machine.json":  {`"kernel"`, "max_user_instances", fmt.Sprintf(`"PID": %d`, s.envoy.PID())},
		"envoys.json":   {`"Version": "1.`, `"Polled"`},
		"status.json":   {`"watch_state": "running"`, `"SYNCED"`, "rds/main/rds.json"},
		"manifest.json": {`"sds/token/sds.json": "v`, `"format": "json"`},
		"files.txt":     {" rds/main/rds.json\n", "-rw-r----- "},
		"events.json":   {`"event": "published"`, `"event": "source-invalid"`},
	} {
		for _, want := range wants {
			if !strings.Contains(all[name], want) {
				t.Errorf("%s lacks %q:\n%.2000s", name, want, all[name])
			}
		}
		delete(all, name)
	}
	if len(all) > 0 {
		t.Errorf("the bundle also has %v", all)
	}
}

// unpacked returns the files of a bundle.
func unpacked(t *testing.T, path string) map[string]string {
	t.Helper()
	f, err := os.Open(path)
	orFatal(t, err)
	defer f.Close()
	compressed, err := gzip.NewReader(f)
	orFatal(t, err)
	files := make(map[string]string)
	for archive := tar.NewReader(compressed); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		orFatal(t, err)
		data, err := io.ReadAll(archive)
		orFatal(t, err)
		files[strings.TrimPrefix(header.Name, "xdspub-bundle/")] = string(data)
	}
}
