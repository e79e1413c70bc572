package importer

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"xdspub/xds"
)

const (
	// maxCommented bounds a YAML file whose comments are kept: its nodes take fifty times its
	// space.
	maxCommented = 16 << 20
	// maxNodes bounds the nodes of a document with its aliases expanded: what load reads at once
	// has half as many.
	maxNodes = 1_200_000
)

// document is the YAML of a bootstrap, without anchors and aliases.
type document struct {
	node *yaml.Node
	left int // nodes that it may still have
}

// edit is a text that a resource gets at a path.
type edit struct {
	path  xds.Path
	value string
}

// read reads the YAML of the configuration. If that fails, comments are lost, and a finding reports the loss.
func (d *draft) read() {
	doc, err := newDocument(d.in.Data)
	if err == nil {
		d.document = doc
		return
	}
	d.warn(d.bootstrap, "", "the comments of this file are lost: "+err.Error(), "")
}

func newDocument(data []byte) (*document, error) {
	if len(data) > maxCommented {
		return nil, errors.New("it is too large to keep them")
	}
	var node yaml.Node
	if err := yaml.NewDecoder(bytes.NewReader(data)).Decode(&node); err != nil {
		return nil, err
	}
	d := &document{left: maxNodes}
	if d.node = d.expand(&node); d.node == nil {
		return nil, errors.New("its aliases expand to too much")
	}
	if len(d.node.Content) != 1 || d.node.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("it is no mapping")
	}
	return d, nil
}

// expand returns a copy of a node in which anchored values stand in place of their aliases; nil
// where that gets too large.
func (d *document) expand(n *yaml.Node) *yaml.Node {
	if d.left--; d.left < 0 {
		return nil
	}
	c := *n
	if n.Kind == yaml.AliasNode {
		c = *n.Alias
		c.HeadComment, c.LineComment, c.FootComment = n.HeadComment, n.LineComment, n.FootComment
	}
	c.Anchor, c.Alias = "", nil
	content := c.Content
	c.Content = make([]*yaml.Node, len(content))
	for i, child := range content {
		if c.Content[i] = d.expand(child); c.Content[i] == nil {
			return nil
		}
		if child.Kind == yaml.AliasNode && c.Content[i].Kind != yaml.ScalarNode {
			above(&c, i)
		}
	}
	return &c
}

// above puts the comment behind an alias where it can stand once the alias is expanded: behind
// the key of a mapping, or above the element of a list.
func above(around *yaml.Node, i int) {
	n := around.Content[i]
	if around.Kind == yaml.MappingNode {
		around.Content[i-1].LineComment = n.LineComment
	} else if n.LineComment != "" {
		n.HeadComment = strings.TrimPrefix(n.HeadComment+"\n"+n.LineComment, "\n")
	}
	n.LineComment = ""
}

// take removes from the document the items that leave the bootstrap, and returns their nodes. The nodes keep
// the comments of lists that are empty afterwards. take returns nil if the document does not have the items in
// their order.
func (d *document) take(items []*item) map[*item]*yaml.Node {
	root := d.node.Content[0]
	static := valueOf(root, "static_resources")
	if static == nil {
		return map[*item]*yaml.Node{}
	}
	nodes := make(map[*item]*yaml.Node)
	for i := 0; i+1 < len(static.Content); {
		key, list := static.Content[i], static.Content[i+1]
		of := slices.DeleteFunc(slices.Clone(items), func(i *item) bool { return !named(key, string(i.Type.Static)) })
		if len(of) > 0 && (list.Kind != yaml.SequenceNode || len(list.Content) != len(of)) {
			return nil
		}
		if !taken(list, of, nodes) {
			i += 2
			continue
		}
		var lost comments
		lost.of(key, list)
		lost.giveTo(nodes[of[0]])
		static.Content = slices.Delete(static.Content, i, i+2)
	}
	if len(static.Content) > 0 || len(nodes) == 0 {
		return nodes
	}
	var lost comments
	i := slices.Index(root.Content, static)
	lost.of(root.Content[i-1], static)
	lost.giveTo(nodes[items[slices.IndexFunc(items, func(i *item) bool { return nodes[i] != nil })]])
	root.Content = slices.Delete(root.Content, i-1, i+1)
	return nodes
}

// taken moves the nodes of leaving items from a list to nodes. taken reports whether the list had elements and
// loses all of them.
func taken(list *yaml.Node, of []*item, nodes map[*item]*yaml.Node) bool {
	var left []*yaml.Node
	for j, i := range of {
		if i.stays != "" {
			left = append(left, list.Content[j])
		} else {
			nodes[i] = list.Content[j]
		}
	}
	if len(of) > 0 {
		list.Content = left
	}
	return len(of) > 0 && len(left) == 0
}

// comments are those of nodes that go.
type comments []string

func (c *comments) of(nodes ...*yaml.Node) {
	for _, n := range nodes {
		for _, text := range []string{n.HeadComment, n.LineComment, n.FootComment} {
			if text != "" {
				*c = append(*c, text)
			}
		}
	}
}

// giveTo puts the comments above a node.
func (c *comments) giveTo(n *yaml.Node) {
	if len(*c) == 0 {
		return
	}
	if n.HeadComment != "" {
		*c = append(*c, n.HeadComment)
	}
	n.HeadComment = strings.Join(*c, "\n\n")
}

// resourceDocument returns the document of a file with one resource.
func resourceDocument(n *yaml.Node, i *item) *yaml.Node {
	c := *n
	c.Style &^= yaml.FlowStyle
	c.Content = append([]*yaml.Node{textNode("@type"), textNode(i.Type.URL())}, n.Content...)
	c.Content[0].Style, c.Content[1].Style = yaml.DoubleQuotedStyle, 0
	for _, e := range i.edits {
		set(&c, e)
	}
	return &yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{&c}}
}

func textNode(value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value}
}

// set writes a text into a mapping. set ignores a missing path; reading the result again reveals the
// difference.
func set(n *yaml.Node, e edit) {
	for step := range e.path.Steps() {
		switch {
		case step.Name == "" && n.Kind == yaml.SequenceNode && step.Index < len(n.Content):
			n = n.Content[step.Index]
			continue
		case step.Name == "" || n.Kind != yaml.MappingNode:
			return
		}
		value := valueOf(n, step.Name)
		if value == nil {
			value = textNode("")
			n.Content = append(n.Content, textNode(step.Name), value)
		}
		n = value
	}
	n.Kind, n.Tag, n.Value, n.Content, n.Style = yaml.ScalarNode, "!!str", e.value, nil, 0
}

// valueOf returns the value of a field, in either spelling of its name; nil where a mapping has
// none.
func valueOf(mapping *yaml.Node, name string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if named(mapping.Content[i], name) {
			return mapping.Content[i+1]
		}
	}
	return nil
}

// named reports whether a key is the name of a field, in either spelling.
func named(key *yaml.Node, name string) bool {
	return name != "" && (key.Value == name || key.Value == camelCase(name))
}

// camelCase returns the name of a field as JSON has it.
func camelCase(name string) string {
	parts := strings.Split(name, "_")
	for i, part := range parts[1:] {
		if part != "" {
			parts[i+1] = strings.ToUpper(part[:1]) + part[1:]
		}
	}
	return strings.Join(parts, "")
}
