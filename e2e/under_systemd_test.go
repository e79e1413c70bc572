package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// driver is what a unit of TestUnderSystemd does. Each line of its output is a fact.
const driver = `cd "$(dirname "$0")"
await() {
	for i in $(seq 1200); do
		if eval "$1"; then echo "$2"; return; fi
		sleep 0.1
	done
	echo "in vain: $1"
}
status() { systemctl show xdspub -p StatusText --value; }
systemctl start xdspub && test -e out/cds/cds.json && echo ready
await 'status | grep -q "^published snapshot v"' "status of a published tree"
systemctl reload xdspub
await 'grep -q reason=SIGHUP watch.log' reloaded
echo '{' >config/bad.yaml
await 'status | grep -q "^the source tree is invalid (1 error)"' "status of an invalid tree"
rm config/bad.yaml
kill -STOP "$(systemctl show xdspub -p MainPID --value)"
await 'test "$(systemctl show xdspub -p NRestarts --value)" = 1' "restarted by the watchdog"
await 'systemctl is-active -q xdspub' "ready again"
systemctl stop xdspub && echo "stopped: $(systemctl show xdspub -p Result --value)"
systemctl start xds.socket
await './xdspub status --serve unix:$PWD/xds.sock >status.log && grep -q "^in sync" status.log' "socket activation"
systemctl --force --force poweroff
`

const activatedUnits = `-- driver.service --
[Unit]
DefaultDependencies=no
[Service]
Type=oneshot
ExecStart=/bin/sh DIR/driver.sh
StandardOutput=file:DIR/driver.log
StandardError=file:DIR/driver.err
-- xds.socket --
[Unit]
DefaultDependencies=no
[Socket]
ListenStream=DIR/xds.sock
FileDescriptorName=xds
Service=serve.service
-- serve.service --
[Unit]
DefaultDependencies=no
[Service]
Type=notify
ExecStart=DIR/xdspub serve --grpc fd:xds DIR/config
-- test.target --
[Unit]
DefaultDependencies=no
Wants=driver.service
`

// TestUnderSystemd runs the unit of init under a systemd of its own, in namespaces: readiness, reload, status, watchdog
// and socket activation. The unit has no sandbox here, because the namespaces permit none.
func TestUnderSystemd(t *testing.T) {
	if testing.Short() {
		t.Skip("starts systemd")
	}
	const systemd = "/lib/systemd/systemd"
	if _, err := os.Stat(systemd); err != nil || os.Geteuid() != 0 {
		t.Skip("NOT TESTED: systemd is not installed, or the tests do not run as root")
	}
	dir := shortDir(t)
	if _, stderr, exit := xdspub(t, "init", filepath.Join(dir, "init")); exit != 0 {
		t.Fatal(stderr)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Rename(filepath.Join(dir, "init", "config"), filepath.Join(dir, "config")))
	program, err := os.ReadFile(binary)
	must(err)
	must(os.WriteFile(filepath.Join(dir, "xdspub"), program, 0o755))
	must(os.WriteFile(filepath.Join(dir, "driver.sh"), []byte(driver), 0o644))
	units := filepath.Join(dir, "units")
	must(os.Mkdir(units, 0o755))

	unit, err := os.ReadFile(filepath.Join(dir, "init", "systemd", "xdspub.service"))
	must(err)
	text := strings.NewReplacer(
		"/usr/local/bin/xdspub", dir+"/xdspub", "/etc/xdspub/config", dir+"/config", "/var/lib/xdspub", dir+"/out",
		"--envoy-admin http://127.0.0.1:9901 ", "", "WatchdogSec=1min", "WatchdogSec=2s",
		"[Unit]\n", "[Unit]\nDefaultDependencies=no\n", "[Service]\n", "[Service]\nStandardError=append:"+dir+"/watch.log\n",
	).Replace(string(unit))
	text = regexp.MustCompile(`(?m)^(User|Group|Before|StateDirectory|Protect|Private|Restrict|Capability|NoNew|System|Memory|Lock|IPAddress|Remove)\w*=.*\n`).ReplaceAllString(text, "")
	must(os.WriteFile(filepath.Join(units, "xdspub.service"), []byte(text+"\n"), 0o644))
	for _, part := range strings.Split(activatedUnits, "-- ")[1:] {
		name, text, _ := strings.Cut(part, " --\n")
		must(os.WriteFile(filepath.Join(units, name), []byte(strings.ReplaceAll(text, "DIR", dir)), 0o644))
	}

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	manager := exec.CommandContext(ctx, "unshare", "--mount", "--pid", "--fork", "--uts", "--ipc", "--cgroup", "--kill-child", "/bin/sh", "-c",
		"mount --make-rprivate / && mount -t proc proc /proc && mount -t tmpfs tmpfs /run && exec "+systemd+" --system --unit=test.target --log-target=console")
	manager.Env = append(environment(), "container=test", "SYSTEMD_UNIT_PATH="+units)
	manager.WaitDelay = time.Second
	said, _ := manager.CombinedOutput() // a power-off is no exit status 0
	got, err := os.ReadFile(filepath.Join(dir, "driver.log"))
	if err != nil {
		t.Skipf("NOT TESTED: systemd does not run in namespaces here: %v\n%s", err, said)
	}
	const want = `ready
status of a published tree
reloaded
status of an invalid tree
restarted by the watchdog
ready again
stopped: success
socket activation
`
	if string(got) != want {
		log, _ := os.ReadFile(filepath.Join(dir, "watch.log"))
		errs, _ := os.ReadFile(filepath.Join(dir, "driver.err"))
		t.Errorf("systemd did\n%s\nwant\n%s\n%s\n%s\n%.3000s", got, want, said, errs, log)
	}
}
