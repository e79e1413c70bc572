package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"xdspub/tools/envoytest"
)

// TestClockIsSet sets the clock of a watch and of a serve forward and back by a day. xdspub judges certificates by
// the present time of the clock. A set clock does not change the trim delay.
func TestClockIsSet(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"watch", "serve"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFaultyDisk(t)
			s.Clock = filepath.Join(t.TempDir(), "clock")
			set := func(ahead string) { envoytest.Publish(t, s.Clock, ahead) }
			status := func(want string) {
				t.Helper()
				envoytest.Eventually(t, patience, want, func() (bool, string) {
					stdout, stderr, _ := xdspub(t, "status", "--out", s.out)
					return strings.HasPrefix(stdout, want), stdout + stderr + s.watch.Log()
				})
			}
			set("0s")
			p := datedPair(t, "edge", time.Now().Add(-time.Hour), time.Now().Add(20*time.Hour))
			s.write(t, "certs/edge.pem", p.certificate)
			s.write(t, "certs/edge.key", p.key)
			args := []string{name, "--out", s.out, "--rescan", "200ms", "--trim-delay", "1h", "--step-gap", "100ms"}
			if name == "serve" {
				args = append(args, "--grpc", address(envoytest.FreePort(t)))
			}
			s.watch = startCommand(t, s.command(t, append(args, s.src)...))
			s.watch.WaitLog(t, "event=published ")
			s.remove(t, "blue.yaml")
			s.watch.WaitLog(t, "event=published ")
			const well, wrong = "in sync", "not in sync: 1 certificate is out of date\n"
			status(well)
			for _, ahead := range []string{"24h", "-24h"} {
				set(ahead)
				status(wrong)
				set("0s")
				status(well)
			}
			s.watch.WaitLog(t, "event=clock-set")
			envoytest.Eventually(t, patience, "what waits for its trim waits since now at the latest", func() (bool, string) {
				stdout, _, _ := xdspub(t, "status", "--out", s.out, "--format", "json")
				var report struct {
					Going []struct {
						Cluster string
						Since   time.Time
					}
				}
				err := json.Unmarshal([]byte(stdout), &report)
				return err == nil && len(report.Going) > 0 && report.Going[0].Cluster == "blue" && !report.Going[0].Since.After(time.Now()), stdout
			})
			if text, err := os.ReadFile(filepath.Join(s.out, "cds/cds.json")); err != nil || !strings.Contains(string(text), `"blue"`) {
				t.Errorf("cluster blue went before its time: %v\n%s", err, text)
			}
		})
	}
}
