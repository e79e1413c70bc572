package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"xdspub/tools/envoytest"
)

// initialized is a directory that xdspub init has written, with the ports and paths of this test. Commands get
// these ports and paths when they run.
type initialized struct {
	*example
	said   string // the output of init, in which the directory is /etc/xdspub
	listen int    // the port of the listener
}

// newInitialized runs xdspub init. app is the port of the app.
func newInitialized(t *testing.T, app int) *initialized {
	t.Helper()
	i := &initialized{example: &example{dir: filepath.Join(t.TempDir(), "edge")}, listen: envoytest.FreePort(t)}
	said, stderr, exit := xdspub(t, "init", i.dir)
	if exit != 0 {
		t.Fatalf("exit status %d\n%s", exit, stderr)
	}
	i.said = strings.ReplaceAll(said, i.dir, "/etc/xdspub")
	port := func() string { return strconv.Itoa(envoytest.FreePort(t)) }
	i.moved = strings.NewReplacer(
		"0.0.0.0", "127.0.0.1", // other machines can't reach the test
		"10000", strconv.Itoa(i.listen), "8080", strconv.Itoa(app), "9090", strconv.Itoa(app),
		"9900", port(), "9901", port(), "18000", port(), "18001", port(),
		"/etc/xdspub", i.dir, "/var/lib/xdspub", filepath.Join(t.TempDir(), "published"),
	)
	i.edit(t, i.moved.Replace, "config/listeners.yaml", "config/endpoints.yaml", "grpc/app.yaml",
		"bootstrap/envoy-files.yaml", "bootstrap/envoy-serve.yaml", "bootstrap/grpc.json")
	return i
}

// program returns a command of xdspub in a file as a command line of this test.
func (i *initialized) program(command string) []string {
	name := binary
	if regexp.MustCompile(`^(watch|serve) `).MatchString(command) {
		name = watcher
	}
	return append([]string{name}, strings.Fields(i.moved.Replace(command))...)
}

// way has the commands of one way to run the files of init: the command of xdspub that ends before Envoy starts,
// the command that runs beside Envoy, and the command of Envoy.
type way struct{ before, beside, envoy string }

// bySystemd returns the commands of the systemd units. TestUnits tests the shell around the first command.
func (i *initialized) bySystemd(t *testing.T) way {
	t.Helper()
	units := string(i.file(t, "systemd/xdspub.service")) + string(i.file(t, "systemd/envoy.service"))
	command := func(pattern string) string {
		t.Helper()
		m := regexp.MustCompile(`(?m)^` + pattern + `$`).FindStringSubmatch(units)
		if m == nil {
			t.Fatalf("no line like %s in the units", pattern)
		}
		return m[1]
	}
	return way{
		command(`ExecStartPre=.*exec /usr/local/bin/xdspub (render .*)'`),
		command(`ExecStart=/usr/local/bin/xdspub (watch .*)`),
		command(`ExecStart=/usr/local/bin/(envoy .*)`),
	}
}

// byCompose returns the commands of the Compose file.
func (i *initialized) byCompose(t *testing.T) way {
	t.Helper()
	var file struct {
		Services map[string]struct{ Command, Entrypoint []string }
	}
	decodeYAML(t, i.file(t, "compose.yaml"), &file)
	command := func(words []string) string { return strings.Join(words, " ") }
	return way{command(file.Services["render"].Command), command(file.Services["watch"].Command), command(file.Services["envoy"].Entrypoint)}
}

// byKubernetes returns the commands of the pod.
func (i *initialized) byKubernetes(t *testing.T) way {
	t.Helper()
	var manifest struct {
		Spec struct {
			Template struct {
				Spec struct {
					InitContainers, Containers []struct{ Args, Command []string }
				}
			}
		}
	}
	decodeYAML(t, i.file(t, "kubernetes/deployment.yaml"), &manifest)
	pod := manifest.Spec.Template.Spec
	command := func(words []string) string { return strings.Join(words, " ") }
	return way{command(pod.InitContainers[0].Args), command(pod.Containers[0].Args), command(pod.Containers[1].Command)}
}

// probes returns the URLs of the probes of the watch in the manifest for Kubernetes.
func (i *initialized) probes(t *testing.T) (urls []string) {
	t.Helper()
	var manifest struct {
		Spec struct {
			Template struct {
				Spec struct {
					Containers []struct {
						Ports                         []struct{ ContainerPort int }
						LivenessProbe, ReadinessProbe struct{ HTTPGet struct{ Path string } }
					}
				}
			}
		}
	}
	decodeYAML(t, i.file(t, "kubernetes/deployment.yaml"), &manifest)
	watch := manifest.Spec.Template.Spec.Containers[0]
	for _, path := range []string{watch.LivenessProbe.HTTPGet.Path, watch.ReadinessProbe.HTTPGet.Path} {
		urls = append(urls, i.moved.Replace(fmt.Sprintf("http://0.0.0.0:%d%s", watch.Ports[0].ContainerPort, path)))
	}
	return urls
}

// startEnvoy starts an Envoy by a command line of init.
func (i *initialized) startEnvoy(t *testing.T, command string) *envoytest.Envoy {
	t.Helper()
	words := strings.Fields(i.moved.Replace(command))
	at := slices.Index(words, "--config-path") + 1
	if words[0] != "envoy" || at == 0 {
		t.Fatalf("%q does not start Envoy as expected", command)
	}
	bootstrap, err := os.ReadFile(words[at])
	if err != nil {
		t.Fatal(err)
	}
	return envoytest.Start(t, envoytest.Options{Bootstrap: bootstrap})
}

// answers waits until the answer of Envoy to a path is want.
func (i *initialized) answers(t *testing.T, path, want string) {
	t.Helper()
	url := fmt.Sprintf("http://%s%s", address(i.listen), path)
	envoytest.Eventually(t, patience, path+" is answered with "+want, func() (bool, string) {
		status, body, err := envoytest.Get(t, url)
		return status == http.StatusOK && strings.TrimSpace(body) == want, fmt.Sprint(status, body, err)
	})
}

// TestInit: the files of init have no finding, and in each way to run them, a client gets an answer.
func TestInit(t *testing.T) {
	envoytest.Binary(t)
	for name, by := range map[string]func(*initialized, *testing.T) way{
		"systemd": (*initialized).bySystemd, "Compose": (*initialized).byCompose, "Kubernetes": (*initialized).byKubernetes,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newInitialized(t, envoytest.NewUpstream(t, "app").Port())
			way := by(i, t)
			before := i.program(way.before)
			if stdout, stderr, exit := run(t, before[0], before[1:]...); exit != 0 || strings.Contains(stdout, "warning") {
				t.Fatalf("%s: exit status %d\n%s%s", way.before, exit, stdout, stderr)
			}
			if stdout, stderr, exit := xdspub(t, "validate", "--warnings-as-errors", filepath.Join(i.dir, "bootstrap/envoy-files.yaml")); exit != 0 {
				t.Errorf("exit status %d\n%s%s", exit, stdout, stderr)
			}
			live := i.startEnvoy(t, way.envoy)
			beside := i.program(way.beside)
			watch := start(t, beside[0], beside[1:]...)
			i.answers(t, "/healthz", "ok")
			i.answers(t, "/", "app")
			i.edit(t, replace(`"ok\n"`, `"fine\n"`), "config/routes.yaml")
			watch.WaitLog(t, "event=published ")
			i.answers(t, "/healthz", "fine")
			reached := regexp.MustCompile(`event=(envoy-in-sync|step-confirmed) `)
			envoytest.Eventually(t, patience, "the watch asks Envoy", func() (bool, string) {
				return reached.MatchString(watch.Log()), "neither is in sync nor confirms"
			})
			content(t, live)
			if name != "Kubernetes" {
				return
			}
			for _, url := range i.probes(t) {
				envoytest.Eventually(t, patience, url, func() (bool, string) {
					status, body, err := envoytest.Get(t, url)
					return status == http.StatusOK, fmt.Sprint(status, body, err)
				})
			}
		})
	}
}

// TestInitServed: the commands that init prints work for an Envoy and for a gRPC client.
func TestInitServed(t *testing.T) {
	envoytest.Binary(t)
	t.Parallel()
	i := newInitialized(t, envoytest.NewUpstream(t, "app").Port())
	next := regexp.MustCompile(`(?m)^  xdspub (serve .*)\n  (envoy .*)\n`).FindStringSubmatch(i.said)
	if next == nil {
		t.Fatalf("init prints no commands:\n%s", i.said)
	}
	serve := i.program(next[1])
	start(t, serve[0], serve[1:]...).WaitLog(t, "event=published ")
	live := i.startEnvoy(t, next[2])
	i.answers(t, "/healthz", "ok")
	i.answers(t, "/", "app")
	content(t, live)
}

// TestInitGRPC: a gRPC client reaches the app by the bootstrap and the tree that init writes for gRPC.
func TestInitGRPC(t *testing.T) {
	t.Parallel()
	i := newInitialized(t, newBackend(t, "app"))
	serve := i.program("serve --grpc 127.0.0.1:18001 /etc/xdspub/grpc")
	start(t, serve[0], serve[1:]...).WaitLog(t, "event=published ")
	call := goClientOf(t, i.file(t, "bootstrap/grpc.json"), "xds:///app")
	if backend, err := call(); err != nil || backend != "app" {
		t.Errorf("%q answers: %v", backend, err)
	}
}

// TestInitChecked: the CI job of init passes, and fails after a fault.
func TestInitChecked(t *testing.T) {
	i := newInitialized(t, envoytest.FreePort(t))
	var workflow struct {
		Jobs struct {
			Validate struct{ Steps []struct{ Run string } }
		}
	}
	decodeYAML(t, i.file(t, ".github/workflows/xdspub.yaml"), &workflow)
	check := func() (failed []string) {
		t.Helper()
		for _, step := range workflow.Jobs.Validate.Steps {
			if step.Run == "" {
				continue
			}
			command := strings.Replace(step.Run, "xdspub", binary, 1)
			stdout, stderr, exit := run(t, "/bin/sh", "-c", fmt.Sprintf("cd %q && %s", i.dir, command))
			if exit != 0 {
				failed = append(failed, fmt.Sprintf("%s: exit status %d\n%s%s", step.Run, exit, stdout, stderr))
			}
		}
		return failed
	}
	if failed := check(); len(failed) > 0 {
		t.Errorf("%s", failed)
	}
	i.edit(t, replace("cluster: app", "cluster: ap"), "config/routes.yaml")
	if failed := check(); len(failed) != 1 || !strings.Contains(failed[0], "unresolved-reference") {
		t.Errorf("with a wrong cluster: %s", failed)
	}
}
