package delivery

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"xdspub/tools/sh"
)

// TestPreCommit commits with the hooks of this repository, as docs/ci.md says.
func TestPreCommit(t *testing.T) {
	t.Parallel()
	from := the(t, repository)
	program := preCommit(t)
	// The hooks are built with the modules that go test has downloaded.
	modules, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "PRE_COMMIT_HOME="+filepath.Join(t.TempDir(), "home"), "GOMODCACHE="+strings.TrimSpace(string(modules)), "GOFLAGS=-trimpath -ldflags=-w")
	rev := strings.TrimSpace(sh.Run(t, from, "git rev-parse HEAD"))
	here := strings.NewReplacer("https://example.com/xdspub", from, "v1.2.3", rev)
	for _, config := range blocks(t, "yaml", "repos:\n") {
		user := userRepository(t)
		commit := func(change string) (string, error) {
			return shell(user, env, change+"\ngit add --all && git commit --message change")
		}
		if err := os.WriteFile(filepath.Join(user, ".pre-commit-config.yaml"), []byte(here.Replace(config)), 0o644); err != nil {
			t.Fatal(err)
		}
		if out, err := shell(user, env, "git add . && git commit --quiet --message hooks && "+program+" install"); err != nil {
			t.Fatal(err, out)
		}
		if out, err := commit("echo >>envoy/README.md; echo >>envoy/clusters/web.yaml; echo '{}' >other.yaml"); err != nil || !strings.Contains(out, "Passed") {
			t.Errorf("%s\na commit without a fault: %v\n%s", config, err, out)
		}
		for _, tt := range []struct {
			change  string
			refused bool
		}{
			{`sed 's/cluster: web/cluster: wbe/' envoy/routes/ingress.yaml >new && mv new envoy/routes/ingress.yaml`, true},
			{`rm envoy/clusters/web.yaml`, strings.Contains(config, "args:")},
		} {
			out, err := commit(tt.change)
			if refused := err != nil && strings.Contains(out, "unknown cluster"); refused != tt.refused {
				t.Errorf("%s\n%s: refused: %v, want %v\n%s", config, tt.change, refused, tt.refused, out)
			}
			sh.Run(t, user, "git reset --quiet --hard")
		}
	}
}

// preCommit returns the path of the program pre-commit. Without it, preCommit skips the test, or fails it in CI.
func preCommit(t *testing.T) string {
	t.Helper()
	out, err := exec.Command(filepath.Join(root, "scripts", "pre-commit")).Output()
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("%w: %s", err, e.Stderr)
	}
	if err != nil && os.Getenv("CI") != "true" {
		t.Skip("NOT TESTED, there is no pre-commit: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}
