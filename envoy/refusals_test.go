package envoy_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"xdspub/envoy"
	"xdspub/tools/envoytest"
)

const private = "in a file that nobody but Envoy may read"

// TestRefusals gives Envoy each kind of file that it refuses, and reads the reasons from its log in each of three
// formats.
func TestRefusals(t *testing.T) {
	for format, c := range map[string]struct {
		more object
		args []string
	}{
		"as it is": {},
		"escaped":  {args: []string{"--log-format-escaped"}},
		"JSON": {more: object{"application_log_config": object{"log_format": object{"json_format": object{
			"level": "%l", "thread": "%t", "text": "%j",
		}}}}},
	} {
		t.Run(format, func(t *testing.T) {
			s := newEverything(newFixture(t))
			for key, value := range c.more {
				s.more[key] = value
			}
			path := filepath.Join(t.TempDir(), "log")
			_, a := s.start(s.more, append(c.args, "--log-path", path, "--file-flush-interval-msec", "10")...)
			log := envoy.NewLog(path)
			for _, row := range s.refusals() {
				s.refused(t, a, log, row)
			}
		})
	}
}

type refusal struct {
	folder    string
	resources []object
	text      string // of the whole file, instead
	want      []envoy.Refusal
}

func (e everything) refusals() []refusal {
	with := func(folder string, changes object) []object {
		resources := e.good(folder)
		for key, value := range changes {
			resources[0][key] = value
		}
		return resources
	}
	ring := static("d")
	ring["lb_policy"] = "RING_HASH"
	ring["ring_hash_lb_config"] = object{"minimum_ring_size": 10, "maximum_ring_size": 5}
	eds := static("e 'f'")
	eds["type"] = "EDS"
	far := listener("far", 5, object{"route_config": object{}})
	far["address"].(object)["socket_address"].(object)["address"] = "192.0.2.1"
	lost := listener("lost", 0, object{"route_config": routes("r", "nowhere")})
	return []refusal{
		{folder: "cds", resources: []object{eds, ring}, want: []envoy.Refusal{
			{API: "CDS", Resource: "e 'f'", Message: "cannot create an EDS cluster without an EDS config"},
			{API: "CDS", Resource: "d", Message: "ring hash: minimum_ring_size (10) > maximum_ring_size (5)"},
		}},
		{folder: "cds", resources: []object{static("")}, want: []envoy.Refusal{{API: "CDS", Message: "ClusterValidationError.Name: value length must be at least 1 characters"}}},
		{folder: "cds", resources: []object{listener("l", 0, nil)}, want: []envoy.Refusal{{API: "CDS", Message: "Unable to unpack as envoy.config.cluster.v3.Cluster"}}},
		{folder: "cds", text: `{"resources": [{"@type": "a.b/Foo", "key": "` + private + `"}]}`, want: []envoy.Refusal{
			{File: e.path("cds"), Message: "Unable to parse JSON as proto (INVALID_ARGUMENT: could not find @type 'a.b/Foo')"},
		}},
		{folder: "lds", resources: []object{far, lost}, want: []envoy.Refusal{
			{API: "LDS", Resource: "far", Message: "cannot bind '192.0.2.1:5': Cannot assign requested address"},
			{API: "LDS", Resource: "lost", Message: "route: unknown cluster 'nowhere'"},
		}},
		{folder: "rds", resources: with("rds", object{"name": "x"}), want: []envoy.Refusal{{API: "RDS", Resource: "rds", Message: "Unexpected RDS configuration (expecting rds): x"}}},
		{folder: "rds", resources: with("rds", object{"virtual_hosts": []any{object{"name": "v", "domains": []any{"*", "*"}}}}), want: []envoy.Refusal{
			{Message: "Only a single wildcard domain is permitted in route rds"},
		}},
		{folder: "rds", resources: with("rds", object{"virtual_hosts": []any{object{"name": private}}}), want: []envoy.Refusal{
			{API: "RDS", Message: "RouteConfigurationValidationError.VirtualHosts[0]: embedded message failed validation | caused by VirtualHostValidationError.Domains: value must contain at least 1 item(s)"},
		}},
		{folder: "eds", resources: with("eds", object{"cluster_name": "x"}), want: []envoy.Refusal{{API: "EDS", Resource: "eds", Message: "Unexpected EDS cluster (expecting eds): x"}}},
		{folder: "sds", resources: with("sds", object{"name": "x"}), want: []envoy.Refusal{{API: "SDS", Resource: "sds", Message: "Unexpected SDS secret (expecting sds): x"}}},
		{folder: "sds", resources: with("sds", object{"validation_context": object{"verify_certificate_hash": []any{private}}}), want: []envoy.Refusal{
			{API: "SDS", Message: "SecretValidationError.ValidationContext: embedded message failed validation | caused by CertificateValidationContextValidationError.VerifyCertificateHash[0]: value length must be at least 64 characters"},
		}},
		{folder: "sds", text: `{"resources": [` + private, want: []envoy.Refusal{{File: e.path("sds"), Message: "Unable to parse JSON as proto (INVALID_ARGUMENT: invalid JSON in envoy.service.discovery.v3.DiscoveryResponse @ resources[0]: message google.protobuf.Any, near 1:16 (offset 15): unexpected character: 'i'; expected '{')"}}},
		{folder: "srds", resources: append(e.good("srds"), e.good("srds")...), want: []envoy.Refusal{
			{API: "SRDS", Resource: "srds", Message: "duplicate scoped route configuration 'scope' found"},
		}},
		{folder: "rtds", resources: with("rtds", object{"name": "x"}), want: []envoy.Refusal{{API: "RTDS", Message: "Unexpected RTDS runtime (expecting rtds): x"}}},
		{folder: "ecds", resources: with("ecds", object{"name": "x"}), want: []envoy.Refusal{{API: "ECDS", Message: "Unexpected resource name in ExtensionConfigDS response: x"}}},
		{folder: "ecds", resources: []object{{"@type": bufferType}}, want: []envoy.Refusal{{API: "ECDS", Message: "Unable to unpack as envoy.config.core.v3.TypedExtensionConfig"}}},
	}
}

// refused publishes a file that Envoy refuses, and then the previous file.
func (e everything) refused(t *testing.T, a *envoy.Admin, log *envoy.Log, row refusal) {
	t.Helper()
	root := ""
	for _, api := range apis {
		if api.folder == row.folder {
			root = api.root
		}
	}
	before := read(t, a, root).Counters[root]
	if err := log.Mark(); err != nil {
		t.Fatal(err)
	}
	since := time.Now()
	if row.text != "" {
		envoytest.Publish(t, e.path(row.folder), row.text)
	} else {
		e.publish(row.folder, "v2", row.resources...)
	}
	eventually(t, a, "refused", []string{root}, func(o *envoy.Observation) bool {
		now := o.Counters[root]
		return now.Rejections+now.Failures == before.Rejections+before.Failures+1
	})
	var got []envoy.Refusal
	late := func() (bool, string) { // another thread of Envoy writes the log
		var err error
		if got, err = log.Refusals(); err != nil {
			t.Fatal(err)
		}
		return len(got) >= len(row.want), fmt.Sprint(got)
	}
	envoytest.Eventually(t, patience, "the log says why", late)
	if diff := cmp.Diff(row.want, got); diff != "" {
		t.Errorf("%s (-want +got)\n%s", row.folder, diff)
	}
	if strings.Contains(fmt.Sprint(got), private) {
		t.Errorf("%s: the reason quotes the file", row.folder)
	}
	listeners, err := a.Refusals(t.Context(), since)
	if err != nil {
		t.Fatal(err)
	}
	var want []envoy.Refusal
	if row.folder == "lds" {
		want = row.want
	}
	if diff := cmp.Diff(want, listeners); diff != "" {
		t.Errorf("%s: listeners (-want +got)\n%s", row.folder, diff)
	}
	e.publish(row.folder, "v1", e.good(row.folder)...)
	eventually(t, a, "taken", []string{root}, func(o *envoy.Observation) bool { return o.Counters[root].Successes == before.Successes+1 })
}

func TestLog(t *testing.T) {
	if testing.Short() {
		t.Skip("reads a log of megabytes")
	}
	path := filepath.Join(t.TempDir(), "log")
	log := envoy.NewLog(path)
	line := func(name string) string {
		return "[2026-01-02 03:04:05.678][9][warning][upstream] [cds_api_helper.cc:74] cds: cluster '" + name + "' config rejected: no\n"
	}
	check := func(what, want string) {
		t.Helper()
		list, err := log.Refusals()
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, r := range list {
			got += r.Resource
		}
		if got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	mark := func() {
		t.Helper()
		if err := log.Mark(); err != nil {
			t.Fatal(err)
		}
	}

	check("no file", "")
	mark()
	write(line("a"))
	check("a new file", "a")
	mark()
	check("nothing new", "")
	write(line("a") + line("b"))
	check("appended", "b")
	mark()
	write(line("c"))
	check("cut off", "c")
	mark()
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	write(line("d") + line("e"))
	check("rotated", "de")
	mark()
	write(line("d") + line("e") + strings.Repeat("[2026-01-02 03:04:05.678] chatter\n", 200_000) + line("f"))
	check("large", "f")

	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := envoy.NewLog(pipe).Mark(); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a pipe: %v", err)
	}
}
