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
		{"api_token: hunter2", ""}, {"- token: hunter2", ""}, {`{token: "hunter2"}`, ""}, {"token: plain words of hunter2", ""},
		{`{"bearerToken": "hunter2", "a": 1}`, ""}, {"credential: [hunter2]", ""}, {"set-cookie: hunter2", ""},
		{`password: {inline_string: hunter2}`, ""}, {`"value": "a?api_key=hunter2"`, ""},
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
		"max_tokens: 100", "cluster: password-service", "forward_bearer_token: true", "- token_bucket:", "secret: {filename: a}",
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
	d := diag.Diagnostic{Code: "x", Position: at("a.pb", 0, 0), Message: "m", Path: `metadata["hunter2\"]"].b["hunter2"]`, Sensitive: true}
	for form, text := range forms(t, d, "") {
		if strings.Contains(text, "hunter2") {
			t.Errorf("as %s:\n%s", form, text)
		}
	}
	d.Sensitive = false
	if text := forms(t, d, "")["record"]; !strings.Contains(text, "hunter2") {
		t.Errorf("no secret, and hidden: %s", text)
	}
	for path, want := range map[string]string{
		`a["web"].api_token.b[1]["hunter2"].c`:           `a["web"].api_token.b[1]["…"].c`,
		`metadata["web"].fields["password"]["hunter2"]`:  `metadata["web"].fields["password"]["…"]`,
		`generic_secret["hunter2"].x`:                    `generic_secret["…"].x`,
		`token_bucket["web"]`:                            `token_bucket["web"]`,
		`clusters["password-service"].max_tokens["web"]`: `clusters["password-service"].max_tokens["web"]`,
		`routes["secret"]`:                               `routes["secret"]`,
	} {
		d.Path = path
		if got := d.Shown().Path; got != want {
			t.Errorf("%s is shown as %s, want %s", path, got, want)
		}
	}
}

// TestLongTexts: a finding that quotes megabytes is shown cut, and the cut leaves no half of a secret.
func TestLongTexts(t *testing.T) {
	long := "type \x1b" + strings.Repeat("x", diag.MaxText-10) + " password=hunter2" + strings.Repeat("y", 1<<20)
	d := diag.Diagnostic{Code: "x", Position: at("a.pb", 0, 0), Message: long, Help: long, Related: []diag.Related{{Position: at("b", 0, 0), Message: long}}}
	for form, text := range forms(t, d, "") {
		if len(text) > 6*diag.MaxText || strings.Contains(text, "hunter") {
			t.Errorf("as %s: %d bytes, %.100q", form, len(text), text)
		}
	}
}

// TestWords checks what Hide leaves of texts that quote configurations, Envoys and servers: no value behind the name of
// a secret, and all else.
func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"invalid config: password=hunter2 is not allowed":          "invalid config: password=… is not allowed",
		"invalid config: password: hunter2 is not allowed":         "invalid config: password: … is not allowed",
		`no such field in {"api_token":"hunter2","name":"web"}`:    `no such field in {"api_token":"…","name":"web"}`,
		`in "{\"token\":\"hunter2\",\"name\":\"web\"}"`:            `in "{\"token\":\"…\",\"name\":\"web\"}"`,
		`token: "hun\"ter2" name: "web"`:                           `token: "…" name: "web"`,
		"token: 'hunter2 hunter2', name: web":                      "token: '…', name: web",
		`password { inline_string: "hunter2" } name: "web"`:        `password { inline_string: "…" } name: "web"`,
		`"clientSecret": {"inlineString": "hunter2"}, "a": "b"`:    `"clientSecret": {"inlineString": "…"}, "a": "b"`,
		`{"key": "x-api-key", "value": "hunter2"}, "append": true`: `{"key": "x-api-key", "value": "…"}, "append": true`,
		`key: "X-My-Token" raw_value: "hunter2" append: false`:     `key: "X-My-Token" raw_value: "…" append: false`,
		"Authorization: Token hunter2":                             "Authorization: …",
		"GET /a?access_token=hunter2&b=c HTTP/1.1":                 "GET /a?access_token=…&b=c HTTP/1.1",
		"https://x.blob.example.com/a?sv=1&sig=hunter2&se=2":       "https://x.blob.example.com/a?sv=1&sig=…&se=2",
		"Post https://hooks.slack.com/services/T0/B0/hunter2 EOF":  "Post https://hooks.slack.com/… EOF",
		"tokens: pwd = hunter2":                                    "tokens: pwd = …",
		"AWS_SECRET_ACCESS_KEY=hunter2 HOME=/root":                 "AWS_SECRET_ACCESS_KEY=… HOME=/root",
		"PGPASSWORD=hunter2":                                       "PGPASSWORD=…",
	} {
		got := diag.Hide(text)
		if got != want {
			t.Errorf("%s\n\tis %s\n\twant %s", text, got, want)
		}
		if again := diag.Hide(got); again != got {
			t.Errorf("%s\n\tagain is %s", got, again)
		}
	}
	for _, text := range []string{
		"token_bucket: {max_tokens: 100, tokens_per_fill: 10}", `{"max_tokens":100,"token_bucket":{"fill_interval":"1s"}}`,
		`cluster "password-service": no healthy host`, `cluster "auth-token": no such cluster`, `cluster "auth-token": missing`,
		"Proto constraint validation failed (GenericSecretValidationError.Secret: value is required)",
		"Proto constraint validation failed (OAuth2CredentialsValidationError.TokenSecret: embedded message failed validation)",
		"secret: required", `no such field: "password"`, `secret "tls": the certificate has expired`, "Secret/tls: REJECTED",
		"forward_bearer_token: true", `"use_refresh_token": false`, "preserve_authorization_header: null", "cookie: {name: session, ttl: 0s}",
		"private_key: {filename: /etc/key.pem}", "authorization: %REQ(x-user)%", "password-service: 10.0.0.1:80", "tokenizer: x", "secretary=x",
		"2 secrets, 3 tokens", "connect to https://user@example.com/a?b=c: connection refused", "key: hunter, value: x", "cookies: 3",
	} {
		if got := diag.Hide(text); got != text {
			t.Errorf("%s\n\tis shown as %s", text, got)
		}
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
