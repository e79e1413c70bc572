package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"xdspub/tools/certs"
	"xdspub/tools/envoytest"
	"xdspub/tools/portion"
	"xdspub/validate/transition"
	"xdspub/xds/clients"
)

// TestServedTransitions serves the examples of the transition rules to an Envoy, by each variant of ADS in turn.
// serve refuses an example with an error. With the rule disabled, Envoy reacts as to files (TestTransitions),
// except to listeners that exchange addresses: serve sends them one after another.
func TestServedTransitions(t *testing.T) {
	t.Parallel()
	envoytest.Binary(t)
	ads := slices.DeleteFunc(slices.Clone(transports), func(k transport) bool { return !k.aggregated })
	turn, every := 0, portion.Every(3, 3)
	for _, rule := range transition.Rules {
		archive, err := txtar.ParseFile(filepath.Join(root, "validate", "transition", "testdata", rule.Code+".txtar"))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range transitions(archive) {
			k := ads[turn%len(ads)]
			if turn++; turn%every != 1%every { // other examples than the sample of TestTransitions
				continue
			}
			t.Run(rule.Code+"/"+c.name+"/"+k.name, func(t *testing.T) {
				t.Parallel()
				c.serve(t, rule.Code, rule.Guards, k)
			})
		}
	}
}

func (c *transitionCase) serve(t *testing.T, code string, guards bool, k transport) {
	s := serveTree(t, map[string]string{"xdspub.yaml": "disable: [expired-certificate]\n"})
	ports, last := make(map[string]string), len(c.trees)-1
	s.writeOne(t, ports, c.trees[0])
	flags := []string{"--grpc", "unix:" + s.socket}
	if !guards {
		flags = append(flags, "--allow-removal")
	}
	s.start(t, flags...)
	s.envoy = envoytest.Start(t, envoytest.Options{Bootstrap: s.served(t, []byte("{node: {id: edge, cluster: test}, dynamic_resources: {cds_config: {ads: {}}, lds_config: {ads: {}}}}"), k)})
	s.synced(t)
	for _, tree := range c.trees[1:last] {
		s.writeOne(t, ports, tree)
		s.server.WaitLog(t, "event=published ")
		s.synced(t)
	}
	s.writeOne(t, ports, c.trees[last])
	if text := s.read(t, "all.yaml"); c.wants || strings.Contains(text, `# want `) && !strings.Contains(text, `# want "^warning`) {
		s.server.WaitLog(t, "code="+code+" ")
		s.server.WaitLog(t, "event=source-invalid ")
		if c.envoy == "takes by files" {
			return // TestServedLEDSWeights
		}
		s.write(t, "xdspub.yaml", "disable: [expired-certificate, "+code+"]\n")
	}
	s.server.WaitLog(t, "event=published ")
	if code != "address-swap" && c.refusesOrCrashes(t, &s.fixture) {
		return
	}
	s.synced(t)
	if refused := s.refusals(t); len(refused) > 0 {
		t.Errorf("Envoy refuses it: %v", refused)
	}
}

// writeOne replaces the source tree by an example in one file, so that all of it is one change.
func (s *servedTree) writeOne(t *testing.T, ports map[string]string, tree map[string][]byte) {
	t.Helper()
	var all []string
	for _, text := range tree {
		text, err := certs.Expand(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, somePorts(t, ports, string(text)))
	}
	text := strings.Join(all, "\n---\n")
	if strings.Contains(text, `"::"`) {
		needIPv6(t)
	}
	s.write(t, "all.yaml", text)
}

// synced waits until a connected client runs all resources that it asks for.
func (s *servedTree) synced(t *testing.T) {
	t.Helper()
	envoytest.Eventually(t, patience, "a client runs what is served", func() (bool, string) {
		stdout, stderr, exit := xdspub(t, "status", "--serve", "unix:"+s.socket, "--format", "json")
		var report struct{ Clients []clients.Client }
		if err := json.Unmarshal([]byte(stdout), &report); err != nil {
			t.Fatal(exit, stderr, err)
		}
		for _, c := range report.Clients {
			asks := make(map[string]bool)
			for _, sub := range c.Subscriptions {
				asks[sub.API] = true
			}
			if c.Gone.IsZero() && asks["CDS"] && asks["LDS"] && c.InSync() {
				return true, ""
			}
		}
		return false, fmt.Sprint(report)
	})
}
