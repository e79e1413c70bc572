package decode

import (
	"regexp"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"xdspub/source/syntax"
	"xdspub/xds"
)

// TestPhrasesOfProtojson checks the messages of protojson that decodeError matches. If an upgrade of protobuf
// changes a message, this test fails and shows the message.
func TestPhrasesOfProtojson(t *testing.T) {
	cluster := func() proto.Message { return &clusterv3.Cluster{} }
	extension := func() proto.Message { return &corev3.TypedExtensionConfig{} }
	const noPlace = -1
	for name, c := range map[string]struct {
		message func() proto.Message
		text    string
		phrase  *regexp.Regexp
		// The words that the phrase captures, and the rune of text at the place.
		want []string
		at   int
	}{
		"unknown field":   {cluster, `{"nme": 1}`, unknownField, nil, 1},
		"second line":     {cluster, "{\n\"größe\": 1}", unknownField, nil, 2},
		"behind umlauts":  {cluster, `{"name": "größe", "nme": 1}`, unknownField, nil, 18},
		"unknown type":    {extension, `{"typed_config": {"@type": "a/b.C"}}`, unresolved, []string{"a/b.C"}, 27},
		"no type":         {extension, `{"typed_config": {"x": 1}}`, badType, nil, 17},
		"number type":     {extension, `{"typed_config": {"@type": 1}}`, badType, nil, 27},
		"empty type":      {extension, `{"typed_config": {"@type": ""}}`, badType, nil, 27},
		"unknown enum":    {cluster, `{"type": "STRICT"}`, badEnum, []string{`"STRICT"`}, 9},
		"enum in list":    {cluster, `{"protocol_selection": {}}`, badEnum, []string{"{"}, 23},
		"wrong string":    {cluster, `{"name": 12}`, badValue, []string{"string", "12"}, 9},
		"wrong bool":      {cluster, `{"respect_dns_ttl": "true"}`, badValue, []string{"bool", `"true"`}, 20},
		"wrong number":    {cluster, `{"max_requests_per_connection": [1]}`, badValue, []string{"uint32", "["}, 32},
		"bad base64":      {extension, `{"typed_config": {"@type": "type.googleapis.com/envoy.config.core.v3.DataSource", "inline_bytes": "!"}}`, badValue, []string{"bytes", `"!"`}, 98},
		"object for list": {cluster, `{"filters": {}}`, badToken, []string{"{"}, 12},
		"text for object": {cluster, `{"metadata": "x"}`, badToken, []string{`"x"`}, 13},
		"null in list":    {cluster, `{"filters": [null]}`, badToken, []string{"null"}, 13},
		"bad duration":    {cluster, `{"connect_timeout": "5"}`, badDuration, []string{`"5"`}, 20},
		"long duration":   {cluster, `{"connect_timeout": "315576000001s"}`, farDuration, []string{`"315576000001s"`}, 20},
		"number duration": {cluster, `{"connect_timeout": 5}`, badToken, []string{"5"}, 20},
		"oneof":           {cluster, `{"type": "EDS", "cluster_type": {}}`, setTwice, []string{"cluster_type", "envoy.config.cluster.v3.Cluster.cluster_discovery_type"}, 16},
		"two spellings":   {cluster, `{"alt_stat_name": "a", "altStatName": "b"}`, duplicate, nil, 23},
		"deep":            {extension, strings.Repeat(`{"typed_config": {"@type": "a/envoy.config.core.v3.TypedExtensionConfig", "typed_config": `, 150) + "{}" + strings.Repeat("}}", 150), regexp.MustCompile("recursion depth"), nil, noPlace},
	} {
		t.Run(name, func(t *testing.T) {
			err := protojson.UnmarshalOptions{Resolver: resolver{}, RecursionLimit: syntax.MaxDepth}.Unmarshal([]byte(c.text), c.message())
			if err == nil {
				t.Fatal("protojson takes it")
			}
			reason, place := cleaned(err)
			found := c.phrase.FindStringSubmatch(reason)
			if found == nil {
				t.Fatalf("protojson says %q, which %v does not match", reason, c.phrase)
			}
			if got := strings.Join(found[1:], "|"); got != strings.Join(c.want, "|") {
				t.Errorf("of %q is used %q, want %q", reason, got, c.want)
			}
			at := noPlace
			if place != nil {
				at = len([]rune(c.text[:offsetOf([]byte(c.text), place.line, place.column)]))
			}
			if at != c.at {
				t.Errorf("%q is at %d, want %d", reason, at, c.at)
			}
		})
	}
}

func TestPathAt(t *testing.T) {
	const text = `{"a": {"b.c": [1, {"d": {}}, "größe"]}, "7": [[2]], "\u0065": 3}`
	for token, want := range map[string]struct {
		path xds.Path
		key  bool
	}{
		`{"a"`:      {"", false},
		`"a"`:       {"a", true},
		`{"b.c"`:    {"a", false},
		`"b.c"`:     {`a["b.c"]`, true},
		`[1`:        {`a["b.c"]`, false},
		`1`:         {`a["b.c"][0]`, false},
		`"d"`:       {`a["b.c"][1].d`, true},
		`{}`:        {`a["b.c"][1].d`, false},
		`"größe"`:   {`a["b.c"][2]`, false},
		`"7"`:       {"7", true},
		`2`:         {"7[0][0]", false},
		`"\u0065"`:  {"e", true},
		`3`:         {"e", false},
		`not there`: {"", false},
	} {
		path, key := pathAt([]byte(text), strings.Index(text, token))
		if path != want.path || key != want.key {
			t.Errorf("%s: %q, %v; want %q, %v", token, path, key, want.path, want.key)
		}
	}
}
