package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"xdspub/check"
	"xdspub/diag"
	"xdspub/envoy/envoyapi"
	"xdspub/tools/certs"
	"xdspub/tools/envoytest"
	"xdspub/tools/golden"
	"xdspub/tools/portion"
)

// facts is testdata/facts.yaml.
type facts struct {
	Words map[string]string // Envoy's behaviour in words, by the name of the fact
	Slots map[string]map[string]any
	Facts map[string][]fact
}

// fact is one row: a configuration, and the reactions of Envoy and of xdspub.
type fact struct {
	Slot      string            `json:"-"`
	Payload   any               `json:"-"`
	Bootstrap map[string]any    // fields of the bootstrap beside its static resources
	Files     map[string]any    // the files beside the bootstrap: a text, or resources
	Live      bool              // only a live Envoy shows the reaction
	Send      string            // is sent to the listener of a LIVE Envoy
	Envoy     string            // Envoy's reaction
	Answers   string            // the beginning of the answer to Send
	Says      string            // a part of Envoy's log
	Since     string            // the first release that refuses the configuration
	XDSPub    map[string]string // the codes of the findings, by severity
	Finds     string            // in verdicts.yaml: the severity of the findings of the row's rule
}

// UnmarshalJSON takes a key that is no field as the slot.
func (f *fact) UnmarshalJSON(text []byte) error {
	type plain fact
	if err := json.Unmarshal(text, (*plain)(f)); err != nil {
		return err
	}
	var all map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	for key, value := range all {
		switch key {
		case "bootstrap", "files", "live", "send", "envoy", "answers", "says", "since", "xdspub", "finds":
		default:
			if f.Slot != "" {
				return fmt.Errorf("two slots, %s and %s, or a key that is misspelled", f.Slot, key)
			}
			f.Slot, f.Payload = key, value
		}
	}
	return nil
}

// TestFacts gives each row of testdata/facts.yaml to validate, and a sample of the rows to Envoy.
func TestFacts(t *testing.T) {
	envoytest.Binary(t)
	table := readFacts(t)
	tryRows(t, table, table.Facts, portion.Every(4, 4))
}

// tryRows compares each row with the rules, and each n-th row with Envoy.
func tryRows(t *testing.T, table facts, rows map[string][]fact, n int) {
	t.Helper()
	count := 0
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		for i, f := range rows[name] {
			asksEnvoy := count%n == 0
			count++
			t.Run(fmt.Sprintf("%s/%d", name, i), func(t *testing.T) {
				t.Parallel()
				trial := newFactTrial(t, table, f)
				trial.validate(t)
				if asksEnvoy {
					trial.askEnvoy(t)
				}
			})
		}
	}
}

// TestFactsPage compares the table of docs/evidence/envoy-facts.md with testdata/facts.yaml.
func TestFactsPage(t *testing.T) {
	head, _, ok := strings.Cut(page(t, "docs/evidence/envoy-facts.md"), factsTable)
	if !ok {
		t.Fatal("docs/evidence/envoy-facts.md has no table")
	}
	golden.Compare(t, "../../docs/evidence/envoy-facts.md", head+factsTable+factRows(t, readFacts(t)))
}

const factsTable = "| Envoy … | finding | row |\n|---|---|---|\n"

// factRows returns the rows of the page: first the facts that end Envoy, then those that make Envoy hang, then the
// others.
func factRows(t *testing.T, table facts) string {
	t.Helper()
	var rows [3][]string
	for _, name := range slices.Sorted(maps.Keys(table.Facts)) {
		words, group := table.Words[name], 2
		if words == "" {
			t.Errorf("testdata/facts.yaml: the fact %s has no words", name)
		}
		var codes []string
		for _, f := range table.Facts[name] {
			for _, code := range f.XDSPub {
				codes = append(codes, "`"+code+"`")
			}
			switch f.Envoy {
			case "crashes", "ends":
				group = 0
			case "hangs":
				group = min(group, 1)
			}
		}
		slices.Sort(codes)
		rows[group] = append(rows[group], fmt.Sprintf("| %s | %s | `%s` |\n", words, strings.Join(slices.Compact(codes), ", "), name))
	}
	for name := range table.Words {
		if table.Facts[name] == nil {
			t.Errorf("testdata/facts.yaml has words for %s, and no such fact", name)
		}
	}
	return strings.Join(slices.Concat(rows[0], rows[1], rows[2]), "")
}

// readFacts reads testdata/facts.yaml, and adds the slots of references.yaml.
func readFacts(t *testing.T) facts {
	t.Helper()
	var table facts
	var others references
	for name, into := range map[string]any{
		"facts.yaml": &struct {
			Parts any
			*facts
		}{facts: &table},
		"references.yaml": &struct {
			Parts any
			*references
		}{references: &others},
	} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		text, err = certs.Expand(text)
		if err != nil {
			t.Fatal(err)
		}
		full := strings.ReplaceAll(string(text), `"@type": `, `"@type": type.googleapis.com/`)
		if err := yaml.UnmarshalStrict([]byte(full), into); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	for name, slot := range others.Slots {
		if table.Slots[name] == nil {
			table.Slots[name] = slot
		}
	}
	return table
}

// factTrial is a fact with the directory in which an Envoy tries it.
type factTrial struct {
	fact
	dir       string
	bootstrap []byte
	port      int // of the listener
}

func newFactTrial(t *testing.T, table facts, f fact) *factTrial {
	t.Helper()
	trial := &factTrial{fact: f, dir: t.TempDir(), port: 10000}
	ports := strings.NewReplacer()
	if f.live() {
		trial.port = envoytest.FreePort(t)
		ports = strings.NewReplacer(
			`"port_value":10000`, fmt.Sprintf(`"port_value":%d`, trial.port),
			`"port_value":10001`, fmt.Sprintf(`"port_value":%d`, envoytest.FreePort(t)),
			`"port_value":8080`, fmt.Sprintf(`"port_value":%d`, envoytest.NewUpstream(t, "web").Port()),
		)
	}
	marshal := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return ports.Replace(string(text))
	}
	for name, content := range f.Files {
		text, ok := content.(string)
		if !ok {
			text = marshal(map[string]any{"resources": content})
		}
		envoytest.Publish(t, filepath.Join(trial.dir, name), text)
	}
	row := map[string]any{"bootstrap": map[string]any{
		"admin": map[string]any{"address": map[string]any{"socket_address": map[string]any{"address": "127.0.0.1", "port_value": 0}}},
	}}
	maps.Copy(row["bootstrap"].(map[string]any), f.Bootstrap)
	resources := []any{table.upstream()}
	if f.Slot != "" {
		if table.Slots[f.Slot] == nil {
			t.Fatalf("no slot %s", f.Slot)
		}
		row[f.Slot] = f.Payload
		resources = append(resources, references{Slots: table.Slots}.resources(t, row)[1:]...)
	}
	trial.bootstrap = []byte(marshal(json.RawMessage(bootstrapOf(t, row, resources))))
	envoytest.Publish(t, filepath.Join(trial.dir, "envoy.json"), string(trial.bootstrap))
	return trial
}

// upstream returns the cluster web of each bootstrap.
func (facts) upstream() map[string]any {
	return map[string]any{
		"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "web", "connect_timeout": "1s",
		"load_assignment": map[string]any{"cluster_name": "web", "endpoints": []any{map[string]any{"lb_endpoints": []any{map[string]any{
			"endpoint": map[string]any{"address": map[string]any{"socket_address": map[string]any{"address": "127.0.0.1", "port_value": 8080}}},
		}}}}},
	}
}

func (f fact) live() bool { return f.Live || f.Send != "" || len(f.Files) > 0 }

// askEnvoy compares the row with Envoy. If the row has a Since, askEnvoy also asks the Envoys of this release and of
// the release before.
func (f *factTrial) askEnvoy(t *testing.T) {
	t.Helper()
	f.overNetwork(t)
	f.run(t, envoytest.Binary(t))
	if f.Since == "" {
		return
	}
	f.run(t, envoytest.Version(t, envoyapi.Named(f.Since).Name))
	before := *f
	releases := envoyapi.Releases()
	older := envoyapi.Named(releases[slices.Index(releases, f.Since)-1])
	before.Envoy, before.Says = "takes", ""
	before.run(t, envoytest.Version(t, older.Name))
	if found := f.check(t, older); found.Count(diag.Error) > 0 || !slices.ContainsFunc(found, func(d diag.Diagnostic) bool {
		return diag.CodeOf(d.Code) == f.XDSPub["error"] && strings.Contains(d.Message, "Envoy before "+f.Since+" takes it")
	}) {
		t.Errorf("Envoy %s takes it, and xdspub finds %v", older.Name, found)
	}
}

func (f *factTrial) check(t *testing.T, v *envoyapi.Version) diag.List {
	t.Helper()
	return f.checkFile(t, "envoy.json", v)
}

func (f *factTrial) checkFile(t *testing.T, name string, v *envoyapi.Version) diag.List {
	t.Helper()
	checked, err := check.Bootstrap(t.Context(), check.BootstrapOptions{Path: filepath.Join(f.dir, name), Root: f.dir, Rules: check.Rules{Envoy: v}})
	if err != nil {
		t.Fatal(err)
	}
	return checked.Diagnostics
}

// overNetwork fails the test if the rules find no error because clusters and listeners come over the network, and
// Envoy refuses the bootstrap all the same.
func (f *factTrial) overNetwork(t *testing.T) {
	t.Helper()
	before := f.check(t, envoyapi.Latest)
	var bootstrap map[string]any
	if err := json.Unmarshal(f.bootstrap, &bootstrap); err != nil {
		t.Fatal(err)
	}
	dynamic, _ := bootstrap["dynamic_resources"].(map[string]any)
	if !before.HasErrors() || dynamic["cds_config"] != nil || dynamic["lds_config"] != nil {
		return
	}
	also := factTrial{fact: f.fact, dir: f.dir}
	also.bootstrap = []byte(marshal(t, overNetwork(map[string]any{"bootstrap": bootstrap})["bootstrap"]))
	envoytest.Publish(t, filepath.Join(f.dir, "network.json"), string(also.bootstrap))
	found := also.checkFile(t, "network.json", envoyapi.Latest)
	if found.HasErrors() {
		return
	}
	if ok, log := envoytest.Validate(t, also.bootstrap); !ok {
		t.Errorf("if clusters and listeners come over the network, Envoy refuses it: %s\nxdspub finds %v; without, it finds %v", said(log), found, before)
	}
}

// validate compares the row with the rules.
func (f *factTrial) validate(t *testing.T) {
	t.Helper()
	found := f.check(t, envoyapi.Latest)
	for severity, code := range f.XDSPub {
		if !slices.ContainsFunc(found, func(d diag.Diagnostic) bool { return diag.CodeOf(d.Code) == code && d.Severity.String() == severity }) {
			t.Errorf("xdspub has no %s %s: %v", severity, code, found)
		}
	}
	for _, d := range found {
		if said := refusal.FindString(d.Message); said != "" && diag.CodeOf(d.Code) == f.XDSPub["error"] && !f.keeps(said) {
			t.Errorf("xdspub says %q, and Envoy %s it", said, f.Envoy)
		}
	}
	if n := found.Count(diag.Error); n > 0 && f.XDSPub["error"] == "" {
		t.Errorf("xdspub finds an error: %v", found)
	}
}

// refusal matches the part of a finding about Envoy's reaction to a fault.
var refusal = regexp.MustCompile(`Envoy (does not start|refuses the [a-z]+|removes all|keeps what)`)

// keeps reports whether a text that refusal matches agrees with Envoy's reaction in the row. An Envoy that counts a
// refusal has started.
func (f *factTrial) keeps(said string) bool {
	started := f.live() && (f.Envoy == "refuses" || f.Envoy == "drops" || f.Envoy == "takes")
	switch said {
	case "Envoy does not start":
		return !started && f.Envoy != "takes"
	case "Envoy removes all", "Envoy keeps what":
		return started && f.Envoy != "refuses"
	default:
		return started && f.Envoy == "refuses"
	}
}

// run starts an Envoy, and compares its reaction with the row.
func (f *factTrial) run(t *testing.T, binary string) {
	t.Helper()
	o := envoytest.Options{Binary: binary, Bootstrap: f.bootstrap, Dir: f.dir}
	var does, log string
	switch {
	case f.Send != "":
		does, log = f.request(t, o)
	case f.live():
		trial := envoytest.Try(t, o, patience)
		does, log = "hangs", trial.Log
		switch {
		case trial.Ended:
			does = "ends"
		case trial.Refused:
			does = "refuses"
		case trial.Dropped:
			does = "drops"
		case trial.Live:
			does = "takes"
		}
	default:
		o.Args = []string{"--mode", "validate"}
		var code int
		code, log = envoytest.Run(t, o)
		does = map[int]string{0: "takes", 1: "refuses", -1: "crashes"}[code]
	}
	if does != f.Envoy || !strings.Contains(log, f.Says) || f.Envoy == "refuses" && f.Says == "" {
		t.Errorf("Envoy %s it, saying %q; the table says %s and %q", does, said(log), f.Envoy, f.Says)
	}
}

// request starts an Envoy, sends f.Send to its listener, and returns the reaction and the log.
func (f *factTrial) request(t *testing.T, o envoytest.Options) (does, log string) {
	t.Helper()
	e := envoytest.Start(t, o)
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", f.port))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = conn.Write([]byte(f.Send)) // Envoy may have closed it already
	if f.Envoy == "crashes" {
		if status := e.Wait(t).Sys().(syscall.WaitStatus); status.Signaled() {
			return "crashes", e.Log()
		}
		return "ends", e.Log()
	}
	wait := patience
	if f.Envoy == "hangs" {
		wait = time.Second // an answer comes in a few milliseconds
	}
	if err := conn.SetReadDeadline(time.Now().Add(wait)); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	e.Kill(t)
	if err, ok := err.(net.Error); ok && err.Timeout() {
		return "hangs", e.Log()
	}
	if f.Answers == "" && len(answer) > 0 || !strings.HasPrefix(string(answer), f.Answers) {
		t.Errorf("the answer is %q, want %q", answer, f.Answers)
	}
	return "takes", e.Log()
}

// said returns the last lines of a log.
func said(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	return strings.Join(lines[max(0, len(lines)-4):], "\n")
}
