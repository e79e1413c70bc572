package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"xdspub/tools/envoytest"
)

// TestRefusedSecret has Envoy refuse a change with a new secret, in each format. The rollback restores the old
// files. After the trim, the key is neither in the output directory, including its records, nor in any output of
// xdspub. Only the history has the key, in files that only their owner can read.
func TestRefusedSecret(t *testing.T) { inFormats(t, testRefusedSecret) }

func testRefusedSecret(t *testing.T, format string) {
	up := envoytest.NewUpstream(t, "up")
	page := "route_config: {" + hosts("up") + "}"
	edge := envoytest.FreePort(t)
	busy, _ := takePort(t)
	s := startConfirmed(t, map[string]string{"edge.yaml": documents(staticCluster("up", up.Port()), listener("edge", edge, page))}, "--format", format, "--trim-delay", "1ms")
	before := s.bytesOut(t)
	pair := newPair(t, "secure")
	key := strings.Split(pair.key, "\n")[1]
	s.write(t, "secure.yaml", documents(certificate("key", pair), tlsListener("secure", busy, downstreamTLS("key"), page)))
	s.watch.WaitLog(t, "event=rolled-back ")
	said, stderr, exit := xdspub(t, "status", "--format", "json", "--out", s.out, "--envoy-admin", "http://"+address(s.admin))
	if exit != 1 || !strings.Contains(said, "Address already in use") {
		t.Errorf("status: exit status %d\n%s%s", exit, said, stderr)
	}
	s.watch.WaitLog(t, "event=trimmed")
	s.watch.Signal(t, syscall.SIGTERM)
	s.watch.Wait(t)

	s.sameOut(t, before)
	if !s.exists("sds/key") {
		t.Error("the secret was never out")
	}
	if strings.Contains(said+stderr+s.watch.Log(), key) {
		t.Error("the key is printed")
	}
	err := filepath.WalkDir(s.out, func(name string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil || !strings.Contains(string(text), key) {
			return err
		}
		info, err := e.Info()
		if filepath.Dir(name) != filepath.Join(s.out, ".xdspub", "history") || err == nil && info.Mode().Perm() != 0o600 {
			t.Errorf("%s holds the key, with mode %v", name, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
