package e2e

import (
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"xdspub/tools/certs"
	"xdspub/tools/envoytest"
	"xdspub/tools/portion"
	"xdspub/validate/transition"
)

// TestTransitions publishes a sample of the examples of the transition rules to an Envoy. With the rule disabled, Envoy
// must refuse, accept or crash on a bad example, as the example says. Envoy must accept the good examples.
func TestTransitions(t *testing.T) {
	t.Parallel()
	envoytest.Binary(t)
	count, every := 0, portion.Every(3, 3)
	for _, rule := range transition.Rules {
		archive, err := txtar.ParseFile(filepath.Join(root, "validate", "transition", "testdata", rule.Code+".txtar"))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range transitions(archive) {
			if count++; count%every != 0 {
				continue
			}
			t.Run(rule.Code+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				c.run(t, rule.Code)
			})
		}
	}
}

// transitionCase is an example of a transition rule: source trees that are published one after the other.
type transitionCase struct {
	name  string
	envoy string // "takes", "takes by files", "crashes", or "refuses: " and its words; empty means "takes"
	wants bool   // the example has a finding about removed resources
	trees []map[string][]byte
}

func transitions(archive *txtar.Archive) []*transitionCase {
	var list []*transitionCase
	var last string // the tree of the last file
	for _, f := range archive.Files {
		name, rest, _ := strings.Cut(f.Name, "/")
		if len(list) == 0 || list[len(list)-1].name != name {
			list = append(list, &transitionCase{name: name})
		}
		c := list[len(list)-1]
		tree, file, isTree := strings.Cut(rest, "/")
		switch {
		case tree == "want":
			c.wants = true
			continue
		case !isTree:
			c.envoy = strings.TrimSpace(string(f.Data))
			continue
		}
		if at := name + "/" + tree; at != last {
			last = at
			c.trees = append(c.trees, make(map[string][]byte))
		}
		c.trees[len(c.trees)-1][file] = f.Data
	}
	return list
}

func (c *transitionCase) run(t *testing.T, code string) {
	s := newFixture(t, nil, "--allow-removal", "--disable", code, "--disable", "expired-certificate")
	ports := make(map[string]string)
	for i, tree := range c.trees {
		texts := make(map[string]string)
		for name, text := range tree {
			text, err := certs.Expand(text)
			if err != nil {
				t.Fatal(err)
			}
			texts[name] = somePorts(t, ports, string(text))
		}
		s.render(t, texts)
		if i == 0 {
			s.startEnvoy(t)
		}
	}
	if !c.refusesOrCrashes(t, s) {
		s.tookWhatItReads(t)
	}
}

// refusesOrCrashes waits until an Envoy refuses the last tree or crashes, as the example says. It returns false if
// the Envoy has to accept the tree.
func (c *transitionCase) refusesOrCrashes(t *testing.T, s *fixture) bool {
	t.Helper()
	words, refuses := strings.CutPrefix(c.envoy, "refuses: ")
	switch {
	case refuses:
		envoytest.Eventually(t, patience, "Envoy refuses it", func() (bool, string) {
			refused := s.refusals(t)
			return len(refused) > 0 && strings.Contains(s.envoy.Log(), words), fmt.Sprint(refused)
		})
	case c.envoy == "crashes":
		if status := s.envoy.Wait(t).Sys().(syscall.WaitStatus); !status.Signaled() {
			t.Errorf("Envoy ends with status %d", status.ExitStatus())
		}
	default:
		return false
	}
	return true
}

// render publishes a source tree in place of the one that was there.
func (s *fixture) render(t *testing.T, tree map[string]string) {
	t.Helper()
	if err := os.RemoveAll(s.src); err != nil {
		t.Fatal(err)
	}
	for name, text := range tree {
		if strings.Contains(text, `"::"`) {
			needIPv6(t)
		}
		s.write(t, name, text)
	}
	stdout, stderr, exit := xdspub(t, append(append([]string{"render"}, s.args...), s.src)...)
	if exit != 0 {
		t.Fatalf("xdspub render: exit status %d\n%s%s", exit, stdout, stderr)
	}
}

// needIPv6 ends a test where the machine has none.
func needIPv6(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		t.Skipf("no IPv6 here: %v", err)
	}
	l.Close()
}

var examplePort = regexp.MustCompile(`port_value: (1000\d)\b`)

// somePorts replaces the ports of an example by free ones.
func somePorts(t *testing.T, ports map[string]string, text string) string {
	return examplePort.ReplaceAllStringFunc(text, func(found string) string {
		if ports[found] == "" {
			ports[found] = fmt.Sprintf("port_value: %d", envoytest.FreePort(t))
		}
		return ports[found]
	})
}

// refusals returns the counters of refused files that are not zero.
func (s *fixture) refusals(t *testing.T) map[string]string {
	t.Helper()
	stats := s.envoy.Stats(t, `\.update_(rejected|failure)$`)
	maps.DeleteFunc(stats, func(_, count string) bool { return count == "0" })
	return stats
}

// tookWhatItReads waits until Envoy says of every published file that it took it, as
// far as it reads the file at all, and has refused none.
func (s *fixture) tookWhatItReads(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(s.out, "?ds", "?ds.json"))
	if err != nil {
		t.Fatal(err)
	}
	named, err := filepath.Glob(filepath.Join(s.out, "*ds", "*", "*ds.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, named...) {
		kind := strings.TrimSuffix(filepath.Base(file), ".json")
		stat := map[string]string{
			"cds": `^cluster_manager\.cds\.`, "lds": `^listener_manager\.lds\.`, "eds": `^cluster\.%s\.`, "rds": `^http\.[^.]*\.rds\.%s\.`,
			"sds": `^sds\.%s\.`, "ecds": `^extension_config_discovery\.[^.]*\.%s\.`,
		}[kind]
		stat = strings.ReplaceAll(stat, "%s", regexp.QuoteMeta(filepath.Base(filepath.Dir(file)))) + `version_text$`
		version := versionOf(t, file)
		envoytest.Eventually(t, patience, fmt.Sprintf("Envoy takes %s of %s", version, file), func() (bool, string) {
			stats := s.envoy.Stats(t, stat)
			return len(stats) == 0 || slices.Contains(slices.Collect(maps.Values(stats)), version), fmt.Sprint(stats)
		})
	}
	if refused := s.refusals(t); len(refused) > 0 {
		t.Errorf("Envoy refuses it: %v", refused)
	}
}
