package main

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"xdspub/diag"
	"xdspub/tools/envoytest"
	"xdspub/tools/sh"
)

// TestMain lets the test binary take the place of the program in the command of apart.
func TestMain(m *testing.M) {
	if len(os.Args) > 3 && os.Args[1] == apartCommand {
		fail(enter(os.Args[2], os.Args[3:]))
	}
	os.Exit(m.Run())
}

// TestWorld judges a small directory with both programs.
func TestWorld(t *testing.T) {
	j := &judge{xdspub: build(t), envoy: envoytest.Binary(t), known: noVerdicts(t), serve: serve}
	world, err := gather(filepath.Join("testdata", "world"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]outcome{
		"assignment.textproto": bothAccept,
		"bad.yaml#1":           bothRefuse, // of two documents
		"bad.yaml#2":           bothRefuse,
		"configmap.yaml":       bothRefuse,
		"docs/filter.rst#1":    bothAccept, // each block stands for itself
		"docs/filter.rst#2":    bothRefuse,
		"docs/filter.rst#3":    bothAccept,
		"docs/readme.md":       bothAccept,
		"good.yaml":            bothAccept, // its page was copied
		"late.yaml":            endsLater,  // or nobody knows: TestServe
		"set/clusters.yaml":    bothAccept, // both clusters in one bootstrap
		"set/routes.json#1":    stricter,   // r, and another r: their cluster is not there
		"set/routes.json#2":    bothRefuse,
		"text.pb_text":         bothAccept,
	}
	got := make(map[string]outcome)
	for _, v := range judgeAll(t.Context(), j, world.units, 2) {
		if v.err != nil {
			t.Errorf("%s: %v", v.name, v.err)
		}
		got[v.name] = v.outcome()
		if v.served != nil && v.served.err != nil {
			got[v.name] = endsLater
		}
		if o := v.outcome(); o != want[v.name] {
			t.Logf("%s: %s\n%v\n%s\n%s", v.name, o, v.findings, v.envoy.Said, v.text)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if d := cmp.Diff(map[string]int{"a template": 1}, world.left); d != "" {
		t.Errorf("left out (-want +got)\n%s", d)
	}
}

// TestServe: a serving Envoy judges configurations that --mode validate accepts, and changes nothing on the machine.
func TestServe(t *testing.T) {
	precious := filepath.Join(t.TempDir(), "precious")
	if err := os.WriteFile(precious, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	listener := func(address string) string {
		return "static_resources: {listeners: [{name: l, address: {" + address + "}, filter_chains: [{}]}]}"
	}
	envoy := envoytest.Binary(t)
	for _, test := range []struct {
		config  string
		refuses bool
		unknown string // the reason if there is no verdict
	}{
		{"node: {id: a, cluster: b}", false, ""},
		{"node: {id: a, cluster: b}\nhds_config: {api_type: REST, transport_api_version: V3}", true, ""}, // ends with 0
		{listener(`socket_address: {address: 127.0.0.1, port_value: ` + strconv.Itoa(taken.Addr().(*net.TCPAddr).Port) + `}`), false, ""},
		{listener(`socket_address: {address: 192.0.2.1, port_value: 80}`), false, "cannot bind"},
		{listener(`pipe: {path: "` + precious + `"}`), false, "cannot bind"}, // outside of the sandbox, Envoy would remove the file
		{"layered_runtime: {layers: [{name: l, rtds_layer: {name: r, rtds_config: {path_config_source: {path: /nonexistent/r.yaml}}}}]}", true, ""},
	} {
		dir := t.TempDir()
		config := filepath.Join(dir, "bootstrap.yaml")
		if err := os.WriteFile(config, []byte(test.config), 0o600); err != nil {
			t.Fatal(err)
		}
		s := serve(t.Context(), envoy, dir, config)
		if s.err != nil && strings.Contains(s.err.Error(), "of its own") || errors.Is(s.err, os.ErrPermission) {
			t.Skip("this machine lets no program be kept apart: ", s.err)
		}
		if unknown := s.err != nil; s.refuses != test.refuses || unknown != (test.unknown != "") || unknown && !strings.Contains(s.err.Error(), test.unknown) {
			t.Errorf("%s\n%v", test.config, s)
		}
	}
	if _, err := os.Stat(precious); err != nil {
		t.Error(err)
	}
}

func build(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "xdspub")
	if out, err := exec.Command("go", "build", "-o", program, "xdspub/cmd/xdspub").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

func noVerdicts(t *testing.T) *verdicts {
	t.Helper()
	none, err := openVerdicts("")
	if err != nil {
		t.Fatal(err)
	}
	return none
}

// TestOutcomes: each combination of the results of both programs.
func TestOutcomes(t *testing.T) {
	const (
		clean  = `echo '{"diagnostics": []}'`
		faulty = `echo '{"diagnostics": [{"severity": "error", "code": "some-rule", "file": "'$6'", "message": "this is bad"}]}'; exit 1`
		kind   = `echo '{"diagnostics": [{"severity": "error", "code": "some-rule", "file": "'$6'", "message": "no such cluster: Envoy accepts this"}]}'; exit 1`
		other  = `echo '{"diagnostics": [{"severity": "error", "code": "some-rule", "file": "cds.yaml", "message": "this is bad"}]}'; exit 1`
		warned = `echo '{"diagnostics": [{"severity": "warning", "code": "some-rule", "file": "'$6'", "message": "this is odd"}]}'`
		broken = `echo "panic: oh" >&2; exit 2`
		crash  = `kill -SEGV $$`
		accept = `exit 0`
		refuse = `echo "[2026-01-01 00:00:00.000][1][critical][main] [source/server/server.cc:1] error initializing configuration '$4': no good"; exit 1`
	)
	for _, test := range []struct {
		xdspub, envoy string
		want          outcome
		group         string
		served        served
	}{
		{clean, accept, bothAccept, "", served{}},
		{warned, accept, bothAccept, "", served{}},
		{other, accept, bothAccept, "", served{}}, // Envoy reads no file of a subscription either
		{faulty, refuse, bothRefuse, "", served{}},
		{faulty, crash, bothRefuse, "", served{}},
		{faulty, accept, falseAlarm, "some-rule", served{}},
		{faulty, accept, falseAlarm, "some-rule", served{err: errors.New("nobody knows")}},
		{faulty, accept, endsLater, "some-rule", served{refuses: true}},
		{clean, accept, bothAccept, "", served{refuses: true}}, // not asked
		{kind, accept, stricter, "some-rule", served{}},
		{kind, refuse, missed, "no good", served{}},
		{clean, refuse, missed, "no good", served{}},
		{warned, refuse, missed, "no good", served{}},
		{clean, crash, missedCrash, "", served{}},
		{broken, accept, ourFailure, "exit …: panic: oh", served{}},
		{crash, refuse, ourFailure, "exit -…: ", served{}},
	} {
		dir := t.TempDir()
		j := &judge{xdspub: script(t, dir, "xdspub", test.xdspub), envoy: script(t, dir, "envoy", test.envoy), known: noVerdicts(t),
			serve: func(context.Context, string, string, string) served { return test.served }}
		v := j.judge(t.Context(), unit{text: []byte("{}"), suffix: ".yaml"})
		if v.err != nil || v.outcome() != test.want || test.group != "" && v.group() != test.group {
			t.Errorf("xdspub: %s\nEnvoy: %s\n%s, %q, %v; want %s, %q", test.xdspub, test.envoy, v.outcome(), v.group(), v.err, test.want, test.group)
		}
	}
}

func script(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	sh.Program(t, path, "#!/bin/sh\n"+text+"\n")
	return path
}

// TestReport: the report names disagreements, and counts the other outcomes.
func TestReport(t *testing.T) {
	finding := diag.Diagnostic{Code: "some-rule", Message: "this is bad", Position: diag.Position{File: "bootstrap.yaml", Line: 3}, Path: "address"}
	var b bytes.Buffer
	report{judged: []judged{
		{unit: unit{name: "a.yaml"}, findings: diag.List{finding}},
		{unit: unit{name: "b.yaml"}, envoy: verdict{Exit: 1, Said: "no file '/etc/b'"}},
		{unit: unit{name: "c.yaml"}, envoy: verdict{Exit: 1, Said: "no file '/etc/c'"}},
		{unit: unit{name: "d.yaml"}, envoy: verdict{Exit: -1}},
		{unit: unit{name: "e.yaml"}},
		{unit: unit{name: "f.yaml"}, hung: true},
	}, left: map[string]int{"a template": 2}, examples: 1}.write(&b)
	for _, want := range []string{
		"== our hang: 1", "f.yaml",
		"== missed crash: no error, and Envoy crashes: 1", "d.yaml",
		"    1  some-rule\n         a.yaml\n           bootstrap.yaml:3: address: this is bad [some-rule]",
		"    2  no file …\n         b.yaml\n           Envoy, exit 1: no file '/etc/b'\n",
		"== 6 configurations", "      2  left out: a template",
		"false alarms: 1 of 2, 50.00 % of what Envoy accepts; missed: 3 of 3, 100.00 % of what it refuses",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "c.yaml") {
		t.Errorf("more examples than asked for:\n%s", b.String())
	}
}

// TestVerdicts: judge does not ask Envoy again about a configuration with a saved verdict.
func TestVerdicts(t *testing.T) {
	name := filepath.Join(t.TempDir(), "verdicts")
	first, err := openVerdicts(name)
	if err != nil {
		t.Fatal(err)
	}
	u := unit{text: []byte("{}"), suffix: ".json"}
	said := verdict{Exit: 1, Said: "no\ngood"}
	if err := first.add(u, said); err != nil {
		t.Fatal(err)
	}
	first.close()
	again, err := openVerdicts(name)
	if err != nil {
		t.Fatal(err)
	}
	defer again.close()
	if got, ok := again.of(u); !ok || got != said {
		t.Errorf("%v, %v; want %v", got, ok, said)
	}
	if _, ok := again.of(unit{text: []byte("{}"), suffix: ".yaml"}); ok {
		t.Error("the verdict on JSON is taken for YAML")
	}
}

// TestParts: each configuration is in exactly one part.
func TestParts(t *testing.T) {
	all := make([]unit, 300)
	for i := range all {
		all[i].text = []byte{byte(i), byte(i >> 8)}
	}
	seen, _ := parts("seen")
	unseen, _ := parts("unseen")
	if s, u := len(seen(all)), len(unseen(all)); s+u != len(all) || u < 70 || u > 130 {
		t.Errorf("%d are seen and %d unseen, of %d", s, u, len(all))
	}
	if _, err := parts("some"); err == nil {
		t.Error("an unknown part is taken")
	}
}
