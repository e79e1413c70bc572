package diag_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"xdspub/diag"
)

// TestSecretsAreHidden: no form of a finding shows a secret of any shape, on a line or in a message. Words that
// only look similar are shown.
func TestSecretsAreHidden(t *testing.T) {
	const pem = "-----BEGIN PRIVATE KEY-----hunter2"
	for _, c := range []struct{ line, message string }{
		{"authorization: hunter2", ""},
		{`- header: {key: authorization, value: "hunter2"}`, ""},
		{`{"header": {"key": "Authorization", "value": "hunter2"}}`, ""},
		{`- {header: {key: x-api-key, value: hunter2}}`, ""},
		{"value: Basic aHVudGVyMjpodW50ZXIy", "value \"Basic aHVudGVyMjpodW50ZXIy%\" is wrong"},
		{"value: Bearer aHVudGVyMjpodW50ZXIy", "value Bearer aHVudGVyMjpodW50ZXIy"},
		{"uri: https://user:hunter2@example.com/", `uri "https://user:hunter2@example.com/" is wrong`},
		{"uri: redis://:hunter2@example.com/", `uri "redis://:hunter2@example.com/" is wrong`},
		{`inline: "` + pem + `"`, "found " + pem},
		{"root:$6$hunter2$hunter2", "key root:$6$hunter2$hunter2"},
		{"users: 'user:{SHA}hunter2hunter2='", "user:{SHA}hunter2hunter2="},
		{"x: eyJhunter2hunter2.eyJhunter2hunter2.hunter2", "eyJhunter2hunter2.eyJhunter2hunter2.hunter2"},
		{"x: ghp_hunter2hunter2hunter2", "ghp_hunter2hunter2hunter2"},
		{`{"apiVersion": "v1", "kind": "Secret", "data": {"x": "hunter2"}}`, ""},
		{"redis_password: hunter2", ""},
		{"client_secret = hunter2", ""},
	} {
		d := diag.Diagnostic{Code: "x", Position: at("a.yaml", 1, 1), Message: "m " + c.message, Help: c.message, Path: `a["` + c.message + `"]`}
		d.Correct(diag.Correction{Wrong: "x", Right: c.message}, diag.Edit{Text: c.message})
		for form, text := range forms(t, d, c.line) {
			if strings.Contains(text, "hunter2") || strings.Contains(text, "aHVudGVy") {
				t.Errorf("%s: as %s:\n%s", c.line, form, text)
			}
			if form == "text" && !strings.Contains(text, "not shown: it may hold a secret") {
				t.Errorf("%s: it is not said that the line is not shown:\n%s", c.line, text)
			}
		}
	}
	for _, line := range []string{
		"token_bucket: {max_tokens: 1}", "cookie: {name: hunter2}", "private_key: {filename: hunter2}", "- name: authorization",
		"uri: https://example.com:8080/a@b", "basic_auth: x", "password:", "key: x-hunter2, value: y", "kind: SecretStore",
	} {
		text := forms(t, diag.Diagnostic{Code: "x", Position: at("a.yaml", 1, 1), Message: line}, line)
		if strings.Count(text["text"], line) != 2 || strings.Count(text["JSON"], line) != 1 {
			t.Errorf("%s is hidden:\n%s%s", line, text["text"], text["JSON"])
		}
	}
}

// TestKeysBesideSecrets: the path of a sensitive finding does not show keys, because a key may be a misplaced
// secret.
func TestKeysBesideSecrets(t *testing.T) {
	d := diag.Diagnostic{Code: "x", Position: at("a.pb", 0, 0), Message: "m", Path: `generic_secret["hunter2\"]"].b["hunter2"]`, Sensitive: true}
	for form, text := range forms(t, d, "") {
		if strings.Contains(text, "hunter2") {
			t.Errorf("as %s:\n%s", form, text)
		}
	}
	d.Sensitive = false
	if text := forms(t, d, "")["record"]; !strings.Contains(text, "hunter2") {
		t.Errorf("no secret, and hidden: %s", text)
	}
}

// forms returns all forms in which a finding leaves the program.
func forms(t *testing.T, d diag.Diagnostic, line string) map[string]string {
	t.Helper()
	var text, list bytes.Buffer
	if err := diag.WriteText(&text, diag.List{d}, diag.TextOptions{Line: func(diag.Position) (string, bool) { return line, true }}); err != nil {
		t.Fatal(err)
	}
	if err := diag.WriteJSON(&list, diag.List{d}, diag.Summary{}); err != nil {
		t.Fatal(err)
	}
	record, err := json.MarshalIndent(map[string]any{"findings": diag.List{d}}, "", "  ") // the form on a socket or on disk
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{"text": text.String(), "JSON": list.String(), "record": string(record), "log": d.String()}
}
