package fixes

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"xdspub/diag"
)

// TestDiff: git apply makes the files of a diff that Write makes.
func TestDiff(t *testing.T) {
	for name, text := range map[string]string{
		"plain":       wrong,
		"CRLF":        strings.ReplaceAll(wrong, "\n", "\r\n"),
		"mark":        "\ufeff" + wrong,
		"no line end": strings.TrimSuffix(wrong, "\n"),
		"wide":        "# ü 😀 \u00a0\n" + wrong + "# é\n",
		"documents":   wrong + "---\n" + strings.ReplaceAll(wrong, "name: a", "name: b"),
		"comments":    "# password: is not here\n\n" + wrong,
	} {
		t.Run(name, func(t *testing.T) {
			x := newTree(t)
			x.write("sub/a b.yaml", text, 0o644)
			t.Chdir(x.dir)
			x.fix()
			var out bytes.Buffer
			hidden, err := x.run.Diff(&out)
			if err != nil || hidden != (name == "comments") {
				t.Fatalf("hidden %v, %v:\n%s", hidden, err, &out)
			}
			if hidden {
				return
			}
			apply := exec.Command("git", "apply", "--whitespace=nowarn", "-")
			apply.Stdin = &out
			if text, err := apply.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s\n%s", err, text, &out)
			}
			want := string(x.run.changed()[0].now)
			if got, err := os.ReadFile("sub/a b.yaml"); string(got) != want {
				t.Errorf("git apply makes %q, %v; want %q", got, err, want)
			}
		})
	}
}

// TestDiffHides: a diff never shows a secret, neither in a line that changes nor beside it.
func TestDiffHides(t *testing.T) {
	const secret = "hunter2"
	for name, text := range map[string]string{
		"an inline secret":   "transport_socket_matches: []\nx: {inline_string: " + secret + "}\n",
		"a block":            "x:\n  inline_string: |\n    " + secret + "\n    second line of " + secret + "\n",
		"a misspelt secret":  "x: {inline_strin: " + secret + "}\n",
		"a comment":          "# password: " + secret + "\n",
		"a header":           "x:\n- header:\n    key: Authorization\n    value: " + secret + "\n",
		"a header on a line": "x:\n- header: {key: authorization, value: " + secret + "}\n",
		"a key":              "# -----BEGIN PRIVATE KEY-----\n# " + secret + "\n# -----END PRIVATE KEY-----\n",
		"a secret":           "---\n\"@type\": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret\nname: s\ngeneric_secret: {secret: {inline_bytes: " + secret + "}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			run := New(true)
			run.Add(diag.StandardInput, []byte(wrong+text))
			f := run.named[diag.StandardInput]
			f.now = []byte(right + strings.ReplaceAll(text, "inline_strin:", "inline_string:"))
			var out bytes.Buffer
			hidden, err := run.Diff(&out)
			if err != nil || !hidden || strings.Contains(out.String(), secret) || !strings.Contains(out.String(), "+connect_timeout: 1s\n") && !strings.Contains(out.String(), "…") {
				t.Errorf("hidden %v, %v:\n%s", hidden, err, &out)
			}
		})
	}
}

// TestDiffControl: a diff sends no control characters to a terminal.
func TestDiffControl(t *testing.T) {
	run := New(false)
	run.Add("a\x1b[31m\n.yaml", []byte(wrong+"# \x1b[31m \u202e\n"))
	f := run.named["a\x1b[31m\n.yaml"]
	f.now = []byte(right + "# \x1b[31m \u202e\n")
	var out bytes.Buffer
	hidden, err := run.Diff(&out)
	if err != nil || !hidden || strings.ContainsAny(out.String(), "\x1b\u202e") || !strings.HasPrefix(out.String(), "diff a/a") {
		t.Errorf("hidden %v, %v: %q", hidden, err, &out)
	}
	if strings.Count(strings.SplitN(out.String(), "@@", 2)[0], "\n") != 3 {
		t.Errorf("the name breaks a line: %q", &out)
	}
}
