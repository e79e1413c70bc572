package envoyapi_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"xdspub/envoy/envoyapi"
	"xdspub/tools/certs"
	"xdspub/tools/envoytest"
	"xdspub/tools/unixhttp"
	"xdspub/validate/cel"
	"xdspub/validate/substitution"
)

// trial is a listener that an Envoy accepts or refuses if it knows a row.
type trial struct {
	listener map[string]any
	taken    bool
}

// asksOf has, by file, the function that returns the trials of a row. others are other rows of the file, which the
// row may replace. An Envoy knows a row if all trials end as they should. At least one trial is accepted.
var asksOf = map[string]func(t *testing.T, row string, others []string) []trial{
	"cel-functions.txt":   functionTrials,
	"format-commands.txt": commandTrials,
	"tls-ciphers.txt":     cipherTrials,
	"tls-groups.txt": func(t *testing.T, row string, _ []string) []trial {
		return tlsTrials(t, "ecdh_curves", strings.Fields(row)...)
	},
	"tls-signatures.txt": func(t *testing.T, row string, _ []string) []trial {
		return tlsTrials(t, "signature_algorithms", strings.Fields(row)...)
	},
}

const retryFile = "retry-on.txt"

// rows adds the rows that an Envoy knows, as "row FILE ROW". It tries the rows of the latest version and of
// since.txt.
func (k known) rows(t *testing.T, v *envoyapi.Version, binary string) {
	t.Helper()
	type ask struct {
		line          string
		first, behind int // its trials
	}
	var asks []ask
	var trials []trial
	var listeners []map[string]any
	for file, trialsOf := range asksOf {
		rows := candidates(t, file)
		for _, row := range rows {
			if _, lacks := v.Lacks(celConfig); lacks && strings.HasPrefix(row, "string-") {
				k["row "+file+" "+row] = true // the Envoy has no field by which to try the row
				continue
			}
			a := ask{"row " + file + " " + row, len(trials), 0}
			trials = append(trials, trialsOf(t, row, rows)...)
			a.behind = len(trials)
			asks = append(asks, a)
		}
	}
	for _, one := range trials {
		listeners = append(listeners, one.listener)
	}
	refused := envoytest.Listeners(t, binary, listeners)
	for _, a := range asks {
		agrees, taken := true, false
		for i := a.first; i < a.behind; i++ {
			_, no := refused[i]
			agrees, taken = agrees && no != trials[i].taken, taken || trials[i].taken
		}
		if !taken {
			t.Errorf("%s: it has no trial that is taken", a.line)
		}
		if agrees {
			k[a.line] = true
		}
	}
	k.retryReasons(t, binary)
}

// candidates returns the rows that a version may have in a file.
func candidates(t *testing.T, file string) (rows []string) {
	t.Helper()
	for _, name := range []string{filepath.Join("v"+envoyapi.Latest.Name, file), "since.txt"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			words := strings.Fields(line)
			if name == "since.txt" && len(words) > 3 && words[2] == file && (words[1] == "was" || words[1] == "gone") {
				words = words[3:]
			} else if name == "since.txt" || words[0] == "#" {
				continue
			}
			if row := strings.Join(words, " "); !slices.Contains(rows, row) {
				rows = append(rows, row)
			}
		}
	}
	return rows
}

// commandTrials returns the trials of a command of format strings: with and without an argument and a length, and
// with each word that one of its rows lists.
func commandTrials(_ *testing.T, row string, others []string) (trials []trial) {
	name, rest, _ := strings.Cut(row, " ")
	takes := strings.Fields(rest)
	forms := []string{"", "()", "(a)", "(1)", "(999)", ":5", "(a):5", "(1):5", "(DS_RX_BEG:US_TX_BEG)"}
	if slices.Contains(takes, "coalesce") {
		forms = []string{`({"operators":["PROTOCOL"]})`, `({"operators":["PROTOCOL"]}):5`} // another argument crashes Envoy
	}
	for _, other := range others {
		if words := strings.Fields(other); words[0] == name {
			forms = append(forms, listed(words[1:])...)
		}
	}
	l := &substitution.Language{BuiltIn: map[string][]string{name: takes, "PROTOCOL": {"plain"}}, Functions: cel.Functions(envoyapi.Latest.CELFunctions())}
	for _, form := range forms {
		format := "%" + name + form + "%"
		refuses := slices.ContainsFunc(l.Check(format, substitution.Extensions{}), func(f substitution.Fault) bool { return !f.Taken })
		trials = append(trials, trial{accessLog(format, nil), !refuses})
	}
	return trials
}

// listed returns the arguments with the items of lists in the words of a command.
func listed(words []string) (forms []string) {
	for _, word := range words {
		_, list, _ := strings.Cut(word, ":")
		for _, item := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ':' }) {
			forms = append(forms, "("+item+")", "("+item+":a)", "(:"+item+")")
		}
	}
	return forms
}

// celConfig is the field that enables the functions of strings.
const celConfig = "envoy.extensions.access_loggers.filters.cel.v3.ExpressionFilter.cel_config"

// functionTrials returns the trials of a function or of a syntax of CEL.
func functionTrials(t *testing.T, row string, _ []string) (trials []trial) {
	words := strings.Fields(row)
	kind, name := words[0], words[1]
	if kind == "syntax" {
		return []trial{{celFilter("a.`b-c`", false), true}}
	}
	for _, count := range words[2:] {
		n, err := strconv.Atoi(count)
		if err != nil {
			t.Fatal(err)
		}
		call := name + "(" + strings.TrimPrefix(strings.Repeat(", a", n), ", ") + ")"
		if strings.HasSuffix(kind, "receiver") {
			call = "a." + call
		}
		trials = append(trials, trial{celFilter(call, strings.HasPrefix(kind, "string-")), true})
	}
	return trials
}

func celFilter(expression string, strings bool) map[string]any {
	filter := map[string]any{"@type": "type.googleapis.com/envoy.extensions.access_loggers.filters.cel.v3.ExpressionFilter", "expression": expression}
	if strings {
		filter["cel_config"] = map[string]any{"enable_string_functions": true}
	}
	return accessLog("a", map[string]any{"extension_filter": map[string]any{"name": "cel", "typed_config": filter}})
}

// accessLog returns a listener whose access log has a format and a filter.
func accessLog(format string, filter map[string]any) map[string]any {
	log := map[string]any{"name": "stdout", "typed_config": map[string]any{
		"@type":      "type.googleapis.com/envoy.extensions.access_loggers.stream.v3.StdoutAccessLog",
		"log_format": map[string]any{"text_format_source": map[string]any{"inline_string": format}},
	}}
	if filter != nil {
		log["filter"] = filter
	}
	return map[string]any{"filter_chains": []any{map[string]any{}}, "access_log": []any{log}}
}

// cipherTrials returns the trials of a cipher suite by its two names.
func cipherTrials(t *testing.T, row string, _ []string) []trial {
	return tlsTrials(t, "cipher_suites", strings.Fields(strings.TrimPrefix(row, "-"))[:2]...)
}

// tlsTrials returns the trials of names in a field of tls_params.
func tlsTrials(t *testing.T, field string, names ...string) (trials []trial) {
	t.Helper()
	pair, err := certs.Expand([]byte(`{"certificate_chain": {"inline_string": {{text "server.pem"}}}, "private_key": {"inline_string": {{text "server.key"}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		trials = append(trials, trial{map[string]any{"filter_chains": []any{map[string]any{"transport_socket": map[string]any{"name": "tls", "typed_config": map[string]any{
			"@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
			"common_tls_context": map[string]any{
				"tls_certificates": []any{json.RawMessage(pair)},
				"tls_params":       map[string]any{field: []string{name}},
			},
		}}}}}, true})
	}
	return trials
}

// retryReasons adds the words that an Envoy knows in retry_on. Envoy accepts any word there. A router with
// strict_check_headers answers 400 if a header has an unknown word.
func (k known) retryReasons(t *testing.T, binary string) {
	t.Helper()
	dir := t.TempDir()
	envoytest.Start(t, envoytest.Options{Binary: binary, Dir: dir, Bootstrap: []byte(`
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
static_resources:
  listeners:
  - name: l
    address: {pipe: {path: ./http}}
    filter_chains:
    - filters:
      - name: hcm
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: h
          use_remote_address: true
          internal_address_config: {unix_sockets: true} # of others it removes the headers
          route_config: {name: r, virtual_hosts: [{name: v, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: c}}]}]}
          http_filters:
          - name: router
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router
              strict_check_headers: [x-envoy-retry-on, x-envoy-retry-grpc-on]
  clusters: [{name: c}]
`)})
	client := unixhttp.Client(filepath.Join(dir, "http"))
	knows := func(header, word string) bool {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://envoy/", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set(header, word)
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusBadRequest && response.StatusCode != http.StatusServiceUnavailable {
			t.Fatalf("%s: %s: %s", header, word, response.Status)
		}
		return response.StatusCode != http.StatusBadRequest
	}
	if knows("x-envoy-retry-on", "no-such-word") {
		t.Error("Envoy takes any word in x-envoy-retry-on")
	}
	for _, word := range candidates(t, retryFile) {
		if knows("x-envoy-retry-on", word) || knows("x-envoy-retry-grpc-on", word) {
			k["row "+retryFile+" "+word] = true
		}
	}
}
