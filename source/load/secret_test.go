package load_test

import (
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	sigsyaml "sigs.k8s.io/yaml"

	"xdspub/diag"
	"xdspub/source/load"
	"xdspub/tools/canary"
	"xdspub/xds"
)

// key is the private key of the tests. No part of it may be printed.
const key = "hunter2hunter2hunter2"

// TestSecretsAreNotPrinted checks files with a secret and a fault at any place. No finding has the secret, and
// none prints a line of it.
func TestSecretsAreNotPrinted(t *testing.T) {
	const (
		secret   = `"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret`
		listener = `"@type": type.googleapis.com/envoy.config.listener.v3.Listener`
		tls      = `"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext`
	)
	inListener := func(context string) string {
		return listener + "\nname: l\nfilter_chains:\n- transport_socket:\n    name: tls\n    typed_config:\n      " + tls + "\n      " + strings.ReplaceAll(context, "\n", "\n      ") + "\n"
	}
	for name, content := range map[string]string{
		// Values of a wrong kind, around the key and at the key.
		"kind.yaml":           secret + "\nname: s\ntls_certificate:\n  private_key: " + key + "\n",
		"kind_list.yaml":      secret + "\nname: s\ntls_certificate:\n  private_key: [" + key + "]\n",
		"kind_above.yaml":     secret + "\nname: s\ntls_certificate: [{private_key: {inline_string: " + key + "}}]\n",
		"kind_deep.yaml":      secret + "\nname: s\ntls_certificate: {private_key: {inline_string: {" + key + ": 1}}}\n",
		"kind_number.yaml":    secret + "\nname: s\ngeneric_secret: {secret: {inline_string: 424242424242}}\n",
		"base64.yaml":         secret + "\nname: s\ngeneric_secret: {secret: {inline_bytes: \"" + key + "!\"}}\n",
		"kind_in.yaml":        inListener("common_tls_context:\n  tls_certificates: {private_key: {inline_string: " + key + "}}"),
		"kind_in_deeper.yaml": inListener("common_tls_context:\n  tls_certificates:\n  - private_key: " + key),
		"kind_list_in.yaml":   inListener("session_ticket_keys: {keys: [{inline_string: " + key + "}, " + key + "]}"),
		"kind_text.yaml":      inListener("session_ticket_keys: {keys: " + key + "}"),
		"password.yaml":       inListener("common_tls_context: {tls_certificates: [{password: " + key + "}]}"),
		"provider.yaml":       inListener("common_tls_context: {tls_certificates: [{private_key_provider: {provider_name: p, typed_config: {\"@type\": type.googleapis.com/google.protobuf.BoolValue, value: " + key + "}}}]}"),
		"string.yaml":         listener + "\nname: l\naccess_log: [{name: x, typed_config: {\"@type\": type.googleapis.com/envoy.config.trace.v3.ClientConfig, backend_token: [" + key + "]}}]\n",

		// Another finding on the same line, or below the key.
		"enum_beside.yaml":     inListener("common_tls_context: {tls_params: {tls_minimum_protocol_version: TLS9}, tls_certificates: [{private_key: {inline_string: " + key + "}}]}"),
		"field_beside.yaml":    inListener("common_tls_context: {tls_certificates: [{private_key: {inline_string: " + key + ", bogus: 1}}]}"),
		"misspelled.yaml":      inListener("common_tls_context: {tls_certificates: [{privat_key: {inline_string: " + key + "}}]}"),
		"misspelled.json":      `{"@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret", "name": "s", "tls_certificat": {"private_key": {"inline_string": "` + key + `"}}}`,
		"type_beside.yaml":     "[{" + secret + ", name: s, tls_certificate: {private_key: {inline_string: " + key + "}}}, {\"@type\": type.googleapis.com/no.Such}]\n",
		"minified.json":        `[{"@type":"type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret","name":"s","generic_secret":{"secret":{"inlineString":"` + key + `"}}},{"@type":"type.googleapis.com/envoy.config.cluster.v3.Cluster","bogus":1}]`,
		"pkcs12.yaml":          "[{" + secret + ", name: s, tls_certificate: {pkcs12: {inline_bytes: " + key + "}}}, {\"@type\": type.googleapis.com/no.Such}]\n",
		"static_secrets.yaml":  "static_resources: {secrets: [{name: s, generic_secret: {secret: {inline_string: " + key + "}}, bogus: 1}]}\n",
		"wrapper.yaml":         "{\"@type\": type.googleapis.com/envoy.service.discovery.v3.Resource, name: x, bogus: 1, resource: {" + secret + ", generic_secret: {secret: {inline_string: " + key + "}}}}\n",
		"unknown_type.yaml":    "{\"@type\": type.googleapis.com/envoy.api.v2.auth.Secret, name: s, generic_secret: {secret: {inline_string: " + key + "}}}\n",
		"no_type.yaml":         "{name: s, generic_secret: {secret: {inline_string: " + key + "}}}\n",
		"two_roots.yaml":       "{" + secret + ", name: s}\n{generic_secret: {secret: {inline_string: " + key + "}}}\n",
		"response.yaml":        "{bogus: 1, resources: [{" + secret + ", name: s, generic_secret: {secret: {inline_string: " + key + "}}}]}\n",
		"text_beside_key.yaml": "- " + secret + "\n  name: s\n  generic_secret: {secret: {inline_string: " + key + "}}\n- text\n",

		// Syntax.
		"half.yaml":        secret + "\ntls_certificate:\n  private_key:\n    inline_string: \"" + key + "\n",
		"half.json":        `{"private_key": {"inline_string": "` + key,
		"indent.yaml":      secret + "\ntls_certificate:\n  private_key:\n    inline_string: |\n      -----BEGIN\n  " + key + "\n",
		"colon.yaml":       secret + "\npassword: " + key + ": " + key + "\n",
		"alias.yaml":       secret + "\npassword: *" + key + "\n",
		"anchor_self.yaml": secret + "\npassword: &" + key + " [*" + key + "]\n",
		"tag.yaml":         secret + "\npassword: !!int " + key + "\n",
		"binary.yaml":      secret + "\npassword: !!binary " + key + "!\n",
		"own_tag.yaml":     secret + "\npassword: !" + key + "!x y\n",
		"null_key.yaml":    secret + "\npassword: {~: " + key + "}\n",
		"list_key.yaml":    secret + "\npassword: {[" + key + "]: 1}\n",
		"escape.yaml":      secret + "\npassword: \"\\q" + key + "\"\n",
		"escape.json":      `{"password": "\q` + key + `"}`,
		"surrogate.json":   `{"password": "\ud800` + key + `"}`,
		"control.json":     "{\"password\": \"" + key + "\x01\"}",
		"control.yaml":     secret + "\npassword: " + key + "\x01\n",
		"utf8.yaml":        secret + "\npassword: " + key + "\xff\n",
		"bare.json":        `{"password": ` + key + `}`,
		"tail.json":        `{"password": "x"} ` + key,
		"inf.yaml":         secret + "\npassword: {a: " + key + ", b: .inf}\n",
		"percent.yaml":     "%" + key + "\n---\npassword: x\n",

		// Doubled keys.
		"doubled.yaml":       secret + "\ngeneric_secret: {secret: {inline_string: x, inline_string: " + key + "}}\n",
		"doubled.json":       `{"generic_secret": {"secret": {"inline_string": "x", "inline_string": "` + key + `"}}}`,
		"two_spellings.yaml": secret + "\nname: s\ngeneric_secret: {secret: {inline_string: " + key + ", inlineString: " + key + "}}\n",
		"oneof.yaml":         secret + "\nname: s\ngeneric_secret: {secret: {inline_string: " + key + ", filename: x}}\n",
		"merged.yaml":        secret + "\ngeneric_secret: {secret: {inline_string: x, <<: {inline_string: " + key + "}}}\n",

		// Another suffix.
		"secret.conf": secret + "\npassword: " + key + "\n",
		"secret.pb":   key,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, name, content)
			result := mustLoad(t, load.New(load.Options{}), dir)
			if len(result.Diagnostics) == 0 {
				t.Fatal("nothing was found wrong: the case says nothing")
			}
			for _, d := range result.Diagnostics {
				silent(t, d)
			}
			if out := text(t, result); leaks(out) {
				t.Errorf("printed:\n%s", out)
			}
		})
	}
}

// TestSecretsOfRulesAreNotPrinted checks the findings that rules have at any field of a resource with a key.
func TestSecretsOfRulesAreNotPrinted(t *testing.T) {
	const (
		cert     = `{private_key: {inline_string: ` + key + `}, certificate_chain: {filename: x}}`
		typed    = `typed_config: {"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext, common_tls_context: {tls_certificates: [` + cert + `]}}`
		listener = `{"@type": type.googleapis.com/envoy.config.listener.v3.Listener, name: l, filter_chains: [{transport_socket: {name: tls, ` + typed + `}}]}`
	)
	for name, content := range map[string]string{
		"secret.yaml": `{"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret, name: s, tls_certificate: ` + cert + "}\n",
		"flow.yaml":   listener + "\n",
		"beside.yaml": "[" + listener + ", " + strings.TrimSpace(cluster("c")) + "]\n",
		"block.yaml": `"@type": type.googleapis.com/envoy.config.listener.v3.Listener
name: l
filter_chains:
- transport_socket:
    name: tls
    typed_config:
      "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext
      common_tls_context:
        tls_certificates:
        - private_key:
            inline_string:
              ` + key + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, name, content)
			result := mustLoad(t, load.New(load.Options{}), dir)
			if len(result.Resources()) == 0 {
				t.Fatal("no resources: the case says nothing")
			}
			for _, r := range result.Resources() {
				xds.Walk(r.Message(), func(n *xds.Node) {
					for _, field := range []string{"", "name", "inline_string", "private_key"} {
						path := n.Path()
						if field != "" {
							path = path.Field(field)
						}
						result.Diagnostics = append(result.Diagnostics, r.Diagnostic("rule", path, "found"))
					}
				})
			}
			if out := text(t, result); leaks(out) {
				t.Errorf("printed:\n%s", out)
			}
		})
	}
}

func leaks(s string) bool { return strings.Contains(s, "unter") || strings.Contains(s, "42424242") }

// silent checks that a finding has no part of the key.
func silent(t *testing.T, d diag.Diagnostic) {
	t.Helper()
	said := []string{d.Message, d.Help, d.Path, d.Resource.Name}
	for _, r := range d.Related {
		said = append(said, r.Message)
	}
	for _, s := range said {
		if leaks(s) {
			t.Errorf("a finding says %q", s)
		}
	}
}

// TestHarmlessLines checks that findings about a listener with secrets print the lines without a secret, and no
// line of a secret, in every format.
func TestHarmlessLines(t *testing.T) {
	const listener = `"@type": type.googleapis.com/envoy.config.listener.v3.Listener
name: production
reuse_port: true
address:
  socket_address: {address: 127.0.0.1, port_value: 443}
filter_chains:
- transport_socket:
    name: tls
    typed_config:
      "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext
      session_ticket_keys:
        keys:
        - inline_string: ` + key + `
        - inline_bytes: aHVudGVyMmh1bnRlcjI=
      common_tls_context:
        tls_certificates:
        - private_key:
            inline_string: |
              name: ` + key + `
              cluster: ` + key + `
          password: {inline_string: ` + key + `}
          pkcs12:
            inline_bytes:
              aHVudGVyMmh1bnRlcjI=
          certificate_chain: {filename: /chain.pem}
- filters:
  - name: envoy.filters.network.http_connection_manager
    typed_config:
      "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
      stat_prefix: http
      route_config:
        name: routes
        request_headers_to_add:
        - header:
            key: authorization
            value: ` + key + `
        - {header: {key: x-api-key, value: ` + key + `}}
`
	for _, format := range []string{"yaml", "json", "pb_text"} {
		t.Run(format, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, "a."+format, inFormat(t, load.Input{Name: "a.yaml", Format: "yaml", Data: []byte(listener)}, format))
			result := mustLoad(t, load.New(load.Options{}), dir)
			if len(result.Resources()) != 1 || len(result.Diagnostics) > 0 {
				t.Fatal(result.Diagnostics)
			}
			r := result.Resources()[0]
			xds.Walk(r.Message(), func(n *xds.Node) {
				result.Diagnostics = append(result.Diagnostics, r.Diagnostic("rule", n.Path(), "found"))
				fields := n.Message.ProtoReflect().Descriptor().Fields()
				for i := range fields.Len() {
					result.Diagnostics = append(result.Diagnostics, r.Diagnostic("rule", n.Path().Field(string(fields.Get(i).Name())), "found"))
				}
			})
			out := text(t, result)
			if leaks(out) || strings.Contains(out, "aHVudGVyM") {
				t.Errorf("printed:\n%s", out)
			}
			for _, harmless := range []string{"reuse_port", "production", "socket_address", "stat_prefix", "transport_socket"} {
				if !strings.Contains(out, harmless) {
					t.Errorf("no line with %s is shown:\n%s", harmless, out)
				}
			}
		})
	}
}

// TestHarmlessLinesBesideEachSecret plants a text in each field for secrets. In every format, no finding shows a
// line of that text, and a finding beside it shows its line.
func TestHarmlessLinesBesideEachSecret(t *testing.T) {
	for _, fd := range canary.Fields() {
		payload, err := anypb.New(canary.Plant(fd, key))
		if err != nil {
			t.Fatal(err)
		}
		cluster := &clusterv3.Cluster{Name: "web", ConnectTimeout: durationpb.New(time.Second), Metadata: &corev3.Metadata{TypedFilterMetadata: map[string]*anypb.Any{"m": payload}}}
		resource, err := anypb.New(cluster)
		if err != nil {
			t.Fatal(err)
		}
		data, err := protojson.Marshal(resource)
		if err != nil {
			t.Fatal(err)
		}
		block, err := sigsyaml.JSONToYAML(data)
		if err != nil {
			t.Fatal(err)
		}
		for _, format := range []string{"yaml", "json", "pb_text"} {
			dir := t.TempDir()
			write(t, dir, "a."+format, inFormat(t, load.Input{Name: "a.yaml", Format: "yaml", Data: block}, format))
			result := mustLoad(t, load.New(load.Options{}), dir)
			if len(result.Resources()) != 1 {
				t.Fatal(fd.FullName(), format, result.Diagnostics)
			}
			r := result.Resources()[0]
			xds.Walk(r.Message(), func(n *xds.Node) {
				result.Diagnostics = append(result.Diagnostics, r.Diagnostic("rule", n.Path(), "found"))
				n.Message.ProtoReflect().Range(func(in protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
					result.Diagnostics = append(result.Diagnostics, r.Diagnostic("rule", n.Path().Field(string(in.Name())), "found"))
					return true
				})
			})
			out := text(t, result)
			if leaks(out) || strings.Contains(out, "aHVudGVyM") {
				t.Errorf("%s in %s is printed:\n%s", fd.FullName(), format, out)
			}
			if !strings.Contains(strings.ToLower(strings.ReplaceAll(out, "_", "")), "connecttimeout") {
				t.Errorf("%s in %s: the line of connect_timeout is not shown:\n%s", fd.FullName(), format, out)
			}
		}
	}
}
