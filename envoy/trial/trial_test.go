package trial_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"xdspub/envoy/trial"
	"xdspub/tools/envoytest"
	"xdspub/tools/sh"
)

const good = "static_resources: {clusters: [{name: a, type: STATIC}]}\n"

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// program writes a script that takes the place of an Envoy.
func program(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "envoy")
	sh.Program(t, path, "#!/bin/sh\n"+script+"\n")
	return path
}

// TestValidate: Envoy accepts a bootstrap, or its message becomes a finding, whatever the log settings of the
// bootstrap.
func TestValidate(t *testing.T) {
	envoy := trial.Envoy{Program: envoytest.Binary(t)}
	for text, want := range map[string]string{
		good: "",
		good + "application_log_config: {log_format: {text_format: '%v'}}\n": "",
		"static_resources: {clusters: [{name: a, type: EDS}]}\n":             "Envoy refuses the bootstrap: cannot create an EDS cluster without an EDS config",
		"nod: {}\n":      "has unknown fields",
		"node: {id: [\n": "yaml-cpp: error at line",
		"dynamic_resources: {cds_config: {path_config_source: {path: /none/cds.yaml}}}\nnode: {id: a, cluster: b}\n":             "'/none/cds.yaml' does not exist",
		"application_log_config: {log_format: {json_format: {m: '%j'}}}\nstatic_resources: {clusters: [{name: a, type: EDS}]}\n": "cannot create an EDS cluster without an EDS config",
	} {
		list, err := envoy.Validate(t.Context(), file(t, "boot.yaml", text), "envoy.yaml")
		switch {
		case err != nil:
			t.Errorf("%s: %v", text, err)
		case want == "" && len(list) > 0, want != "" && (len(list) != 1 || !strings.HasPrefix(list[0].String(), "envoy.yaml: error: ") || !strings.Contains(list[0].Message, want)):
			t.Errorf("%s: %v, want %q", text, list, want)
		}
	}
}

// TestValidateRunsLua: Envoy runs the Lua code of a bootstrap that it judges.
func TestValidateRunsLua(t *testing.T) {
	act := filepath.Join(t.TempDir(), "lua")
	boot := fmt.Sprintf(`{"static_resources": {"listeners": [{"name": "l", "address": {"pipe": {"path": "@l"}}, "filter_chains": [{"filters": [{"name": "http", "typed_config": {
"@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager", "stat_prefix": "h", "route_config": {}, "http_filters": [
{"name": "lua", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua", "default_source_code": {"inline_string": "io.open('%s', 'w')"}}},
{"name": "router", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}]}}]}]}]}}`, act)
	list, err := trial.Envoy{Program: envoytest.Binary(t)}.Validate(t.Context(), file(t, "boot.json", boot), "envoy.json")
	if err != nil || len(list) > 0 {
		t.Error(list, err)
	}
	if _, err := os.Stat(act); err != nil {
		t.Error(err)
	}
}

// TestValidateNoEnvoy: a program other than Envoy is an error, whatever it prints.
func TestValidateNoEnvoy(t *testing.T) {
	boot := file(t, "boot.yaml", good)
	for text, want := range map[string]string{
		"exit 0":                      "the program exited without judging the bootstrap: is it Envoy?",
		"echo who are you; exit 3":    "exit status 3; it said: who are you",
		"kill -9 $$":                  "signal: killed",
		"yes":                         "it printed more than 1048576 bytes; it said: y y y",
		"printf 'a\\033[31mb'; false": "exit status 1; it said: a\ufffd[31mb",
	} {
		program := program(t, text)
		list, err := trial.Envoy{Program: program}.Validate(t.Context(), boot, "envoy.yaml")
		if list != nil || err == nil || !strings.Contains(err.Error(), program+" --mode validate: "+want) {
			t.Errorf("%s: %v, %.200v, want %s", text, list, err, want)
		}
	}
	if _, err := (trial.Envoy{Program: "/none/envoy"}).Validate(t.Context(), boot, "envoy.yaml"); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Error(err)
	}
}

// TestValidateEnds: a program that hangs gets SIGTERM after its time limit or when the context ends, and SIGKILL if
// it ignores SIGTERM.
func TestValidateEnds(t *testing.T) {
	boot := file(t, "boot.yaml", good)
	hangs := "echo > $0-runs; while :; do sleep 0.05; done\n"
	slow := trial.Envoy{Program: program(t, hangs), Patience: 100 * time.Millisecond}
	if _, err := slow.Validate(t.Context(), boot, "envoy.yaml"); err == nil || !strings.Contains(err.Error(), "it did not end within 100ms") {
		t.Error(err)
	}
	for _, trap := range []string{"trap 'echo > $0-asked; exit 1' TERM", "trap '' TERM; echo > $0-asked"} {
		program := program(t, trap+"\n"+hangs)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan error)
		go func() {
			_, err := trial.Envoy{Program: program}.Validate(ctx, boot, "envoy.yaml")
			ended <- err
		}()
		envoytest.Eventually(t, 2*time.Minute, "the program runs", func() (bool, string) {
			_, err := os.Stat(program + "-runs")
			return err == nil, ""
		})
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if _, err := os.Stat(program + "-asked"); err != nil {
			t.Error(err)
		}
	}
}
