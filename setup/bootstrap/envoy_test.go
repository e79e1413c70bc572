package bootstrap_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xdspub/setup/bootstrap"
)

var update = flag.Bool("update", false, "rewrite testdata and fail")

func TestEnvoy(t *testing.T) {
	for _, tt := range []struct {
		golden  string
		options bootstrap.EnvoyOptions
	}{{
		golden: "envoy-minimal.yaml",
		options: bootstrap.EnvoyOptions{
			Dir:         "/var/lib/xdspub/",
			NodeID:      "edge-1",
			NodeCluster: "edge",
		},
	}, {
		golden: "envoy-ipv6-layers.yaml",
		options: bootstrap.EnvoyOptions{
			Dir:         "/xds",
			Format:      "pb",
			NodeID:      "0123", // not the number 123
			NodeCluster: "on",   // not true
			Admin:       "[::1]:9901",
			RuntimeLayers: []bootstrap.RuntimeLayer{
				{Name: "base", Folder: "base"},
				{Name: "team/canary", Folder: "team%2Fcanary"},
			},
		},
	}, {
		golden: "envoy-unix.yaml",
		options: bootstrap.EnvoyOptions{
			Dir:         "/srv/my configs",
			Format:      "pb_text",
			NodeID:      "edge-1",
			NodeCluster: "edge",
			Admin:       "unix:/run/envoy/admin.sock",
		},
	}} {
		t.Run(tt.golden, func(t *testing.T) {
			got, err := bootstrap.Envoy(tt.options)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", tt.golden)
			want, err := os.ReadFile(file)
			if err != nil && !*update {
				t.Fatal(err)
			}
			if bytes.Equal(got, want) {
				return
			}
			t.Errorf("got:\n%s\nwant, in %s:\n%s", got, file, want)
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func TestEnvoyRefuses(t *testing.T) {
	layers := func(l ...bootstrap.RuntimeLayer) func(*bootstrap.EnvoyOptions) {
		return func(o *bootstrap.EnvoyOptions) { o.RuntimeLayers = l }
	}
	admin := func(address string) func(*bootstrap.EnvoyOptions) {
		return func(o *bootstrap.EnvoyOptions) { o.Admin = address }
	}
	for _, tt := range []struct {
		name string
		edit func(o *bootstrap.EnvoyOptions)
		want string
	}{
		{"relative dir", func(o *bootstrap.EnvoyOptions) { o.Dir = "out" }, `output directory "out" is not an absolute path`},
		{"no dir", func(o *bootstrap.EnvoyOptions) { o.Dir = "" }, `output directory "" is not an absolute path`},
		{"no node id", func(o *bootstrap.EnvoyOptions) { o.NodeID = "" }, "the node ID is empty"},
		{"no node cluster", func(o *bootstrap.EnvoyOptions) { o.NodeCluster = "" }, "node cluster is empty"},
		{"format", func(o *bootstrap.EnvoyOptions) { o.Format = "toml" }, `invalid format "toml": use json, yaml, pb or pb_text`},
		{"line break of YAML", func(o *bootstrap.EnvoyOptions) { o.NodeID = "a\u2028b" }, "U+2028"},
		{"invalid UTF-8", func(o *bootstrap.EnvoyOptions) { o.NodeID = "a\xff" }, "invalid UTF-8"},
		{"host name", admin("localhost:9901"), `invalid admin address "localhost:9901": write IP:PORT`},
		{"no host", admin(":9901"), `invalid admin address ":9901": write IP:PORT`},
		{"no port", admin("127.0.0.1"), `invalid admin address "127.0.0.1": write IP:PORT`},
		{"port too high", admin("127.0.0.1:65536"), `invalid admin address "127.0.0.1:65536": write IP:PORT`},
		{"IPv6 without brackets", admin("::1:9901"), `invalid admin address "::1:9901": write IP:PORT`},
		{"relative socket", admin("unix:admin.sock"), `"admin.sock" is not an absolute path`},
		{"layer without name", layers(bootstrap.RuntimeLayer{Folder: "f"}), `runtime layer in folder "f" has no name`},
		{"layer without folder", layers(bootstrap.RuntimeLayer{Name: "l"}), `runtime layer "l": "" is not the name of a folder`},
		{"layer in a path", layers(bootstrap.RuntimeLayer{Name: "l", Folder: "../l"}), `runtime layer "l": "../l" is not the name of a folder`},
		{"layer of the admin", layers(bootstrap.RuntimeLayer{Name: "admin", Folder: "f"}), `runtime layer "admin": the bootstrap has a layer of this name already, for /runtime_modify`},
		{"layer twice", layers(bootstrap.RuntimeLayer{Name: "l", Folder: "f"}, bootstrap.RuntimeLayer{Name: "l", Folder: "g"}), `runtime layer "l" is given twice`},
		{"two faults", func(o *bootstrap.EnvoyOptions) { o.NodeID, o.NodeCluster = "", "" }, "subscribes to nothing\nthe node cluster is empty"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := bootstrap.EnvoyOptions{Dir: "/xds", NodeID: "n", NodeCluster: "c"}
			tt.edit(&o)
			got, err := bootstrap.Envoy(o)
			if err == nil {
				t.Fatalf("accepted:\n%s", got)
			}
			if !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "envoy bootstrap: ") {
				t.Errorf("error %q, want %q", err, tt.want)
			}
		})
	}
}
