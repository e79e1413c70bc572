package syntax

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
	sigsyaml "sigs.k8s.io/yaml"
)

func isMarker(line []byte, marker string) bool {
	rest, ok := bytes.CutPrefix(line, []byte(marker))
	if !ok || len(rest) == 0 {
		return ok
	}
	switch r, _ := utf8.DecodeRune(rest); r {
	case ' ', '\t', '\n', '\r', '\u0085', '\u2028', '\u2029':
		return true
	}
	return false
}

// ParseYAML returns the root of a YAML document, nil if the text can't be parsed or is empty.
func ParseYAML(text []byte) *yaml.Node {
	var n yaml.Node
	if yaml.Unmarshal(text, &n) != nil || len(n.Content) == 0 {
		return nil
	}
	return n.Content[0]
}

func isIgnored(key *yaml.Node) bool { return key.Tag == "!ignore" }

// IsMerge reports whether a key of YAML is a merge key.
func IsMerge(key *yaml.Node) bool { return key.Tag == "!!merge" }

// mergedInto is the mappings that the merge keys of a mapping name, in the order
// in which they win.
func mergedInto(n *yaml.Node) []*yaml.Node {
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		if !IsMerge(n.Content[i]) {
			continue
		}
		if v := n.Content[i+1]; v.Kind == yaml.SequenceNode {
			merged = append(merged, v.Content...)
		} else {
			merged = append(merged, v)
		}
	}
	return merged
}

// keyText returns the text of a key in JSON: a bare yes becomes "true".
func keyText(k *yaml.Node) string {
	if k.Kind == yaml.AliasNode {
		k = k.Alias
	}
	if k.Kind != yaml.ScalarNode || k.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 || !readsAsOther(k.Value) {
		return k.Value
	}
	json, err := sigsyaml.YAMLToJSON([]byte(k.Value))
	if err != nil {
		return k.Value
	}
	return strings.Trim(string(json), `"`)
}

// readsAsOther reports whether a bare key may be read as a number or a boolean.
func readsAsOther(text string) bool {
	if text == "" {
		return false
	}
	switch strings.ToLower(text) {
	case "y", "n", "yes", "no", "on", "off", "true", "false":
		return true
	}
	return strings.IndexByte("0123456789+-.", text[0]) >= 0
}

func isItem(line []byte) bool { return line[0] == '-' && (len(line) == 1 || line[1] == ' ') }
