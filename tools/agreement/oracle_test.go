package agreement

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"

	"xdspub/check/oracle"
	"xdspub/diag"
	"xdspub/envoy/trial"
	"xdspub/source/follow"
	"xdspub/tools/envoytest"
	"xdspub/tools/portion"
	"xdspub/xds"
)

// beyond has cases that a running Envoy refuses for a reason that --mode validate does not check.
var beyond = map[string]string{
	"access_log_dir_missing":                     "access logs are not opened",
	"access_log_path_is_dir":                     "access logs are not opened",
	"ecds_terminal_not_last":                     "an extension config is judged without the filters beside it",
	"eds_weight_overflow_ring_hash":              "endpoints are judged without their cluster",
	"listener_address_swap":                      "what runs does not count",
	"listener_socket_option_bad":                 "no socket is opened",
	"ref_eds_grpc_config_source_dynamic_cluster": "all clusters are static here",
	"self_config_source":                         "config sources are replaced",
	"load_deep_nesting_60":                       "a bootstrap in JSON may nest deeper than a payload",
	"tls_down_env_var_missing":                   "it is not asked about what the environment lacks",
	"grpc_json_missing_descriptor":               "it is not asked about files that are not here",
	"typed_struct_unknown_field":                 "it is not asked about what is unknown to xdspub",
	"typed_struct_unknown_type":                  "it is not asked about what is unknown to xdspub",
}

// beyondShadow is beyond for an Envoy that loads the files.
var beyondShadow = map[string]string{
	"access_log_dir_missing":                    "access logs are not opened",
	"access_log_path_is_dir":                    "access logs are not opened",
	"ecds_terminal_not_last":                    "named is the extension config, and what is wrong is the listener",
	"listener_address_swap":                     "what runs does not count",
	"listener_address_and_additional_dup_other": "named is the second of two listeners, and the first one is new",
	"listener_socket_option_bad":                "no socket is opened",
	"load_deep_nesting_60":                      "Envoy refuses the file, and names no resource",
	"tls_down_env_var_missing":                  "it is not asked about what the environment lacks",
	"typed_struct_unknown_type":                 "it is not asked about what is unknown to xdspub",
}

// TestOracle: for random cases that Envoy refused, the oracle, an Envoy with --mode validate, refuses the bad
// side and accepts the good side. It names a resource in which both sides differ.
func TestOracle(t *testing.T) { agrees(t, oracle.New, beyond) }

// TestShadow is TestOracle with an Envoy that also loads the files.
func TestShadow(t *testing.T) { agrees(t, oracle.Shadow, beyondShadow) }

func agrees(t *testing.T, with func(trial.Envoy) *oracle.Oracle, beyond map[string]string) {
	if testing.Short() {
		t.Skip("starts Envoy")
	}
	envoy := trial.Envoy{Program: envoytest.Binary(t)}
	certs := t.TempDir()
	certificates(t, certs)
	cases := read(t)
	random := rand.New(rand.NewPCG(16, 50))
	random.Shuffle(len(cases), func(i, j int) { cases[i], cases[j] = cases[j], cases[i] })
	judged, want := 0, 60/portion.Every(4, 4)
	for _, c := range cases {
		if judged == want {
			break
		}
		if c.outcome != "rejected" || beyond[c.name] != "" || len(c.sides) != 2 {
			continue
		}
		good, bad := c.follow(t, "good", certs), c.follow(t, "bad", certs)
		if bad.Diagnostics.HasErrors() { // xdspub can't read the resource
			continue
		}
		judged++
		o := with(envoy)
		if list := ask(t, o, good); list.HasErrors() {
			t.Errorf("%s/good: %v", c.name, list)
		}
		list := ask(t, o, bad)
		if !list.HasErrors() {
			t.Errorf("%s: taken, and Envoy said: %s", c.name, c.words)
		}
		for _, d := range list {
			if d.Severity == diag.Error && !differs(good.Snapshot, bad.Snapshot, d.Resource) {
				t.Errorf("%s: %v is not what makes bad/ of good/; Envoy said: %s", c.name, d, c.words)
			}
		}
	}
	if judged < want {
		t.Errorf("only %d cases", judged)
	}
}

// follow reads one side of a case, whose certificates have absolute paths.
func (c *testCase) follow(t *testing.T, side, certs string) *follow.Result {
	t.Helper()
	dir := t.TempDir()
	files := map[string][]byte{"boot.yaml": c.boot, "xds/cds.yaml": []byte("resources: []\n"), "xds/lds.yaml": []byte("resources: []\n")}
	for _, f := range c.sides[side] {
		files["xds/"+f.Name] = bytes.ReplaceAll(f.Data, []byte("certs/"), []byte(certs+"/"))
	}
	for name, data := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	followed, err := follow.Bootstrap(t.Context(), filepath.Join(dir, "boot.yaml"), follow.Options{Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	return followed
}

func ask(t *testing.T, o *oracle.Oracle, f *follow.Result) diag.List {
	t.Helper()
	list, err := o.Judge(t.Context(), oracle.Candidate{Snapshot: f.Snapshot, Bootstrap: f.Bootstrap.Message().(*bootstrapv3.Bootstrap)})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// differs reports whether good lacks a resource of bad, or has another content of it.
func differs(good, bad *xds.Snapshot, r diag.Resource) bool {
	key := xds.Key{Type: xds.TypeOfURL(r.Type), Name: r.Name}
	return slices.ContainsFunc(bad.Named(key), func(is *xds.Resource) bool {
		return !slices.ContainsFunc(good.Named(key), is.Same)
	}) || len(bad.Named(key)) > len(good.Named(key))
}
