package bootstrap

import (
	"bytes"
	"encoding/json"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// jsonOf returns a node as JSON. The node was read from JSON, and may have additions. Keys keep their order, and
// numbers keep their digits.
func jsonOf(node *yaml.Node) ([]byte, error) {
	var text, indented bytes.Buffer
	if err := writeJSON(&text, node); err != nil {
		return nil, err
	}
	err := json.Indent(&indented, text.Bytes(), "", "  ")
	indented.WriteByte('\n')
	return indented.Bytes(), err
}

func writeJSON(w *bytes.Buffer, node *yaml.Node) error {
	switch node.Kind {
	case yaml.MappingNode, yaml.SequenceNode:
		ends := map[yaml.Kind]string{yaml.MappingNode: "{}", yaml.SequenceNode: "[]"}[node.Kind]
		w.WriteByte(ends[0])
		for i, n := range node.Content {
			switch {
			case i == 0:
			case node.Kind == yaml.MappingNode && i%2 == 1:
				w.WriteByte(':')
			default:
				w.WriteByte(',')
			}
			if node.Kind == yaml.MappingNode && i%2 == 0 {
				n = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: n.Value}
			}
			if err := writeJSON(w, n); err != nil {
				return err
			}
		}
		w.WriteByte(ends[1])
	case yaml.ScalarNode:
		if node.ShortTag() != "!!str" {
			w.WriteString(node.Value) // a number, true, false or null
			return nil
		}
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		return enc.Encode(node.Value)
	default:
		return fmt.Errorf("line %d is not JSON", node.Line)
	}
	return nil
}
