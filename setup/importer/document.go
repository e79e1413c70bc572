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
	// maxCommented is the size, in bytes, of the largest YAML file whose comments are kept. The nodes of YAML take
	// fifty times the space of the text.
	maxCommented = 16 << 20
	// maxNodes is the largest number of nodes of a document after its aliases are expanded. The loader allows half
	// as many nodes at once.
	maxNodes = 1_200_000
)

// document is the YAML of a bootstrap with all aliases expanded.
type document struct {
	node *yaml.Node
	left int // the number of nodes that it may still get
}

// edit is a text to write at a path of a resource.
type edit struct {
	path  xds.Path
	value string
}

// read reads the YAML of the configuration. If this fails, the comments are lost, and a finding reports the loss.
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

// expand returns a copy of a node in which each alias is replaced by the value that it refers to. It returns nil if
// the result is too large.
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

// above moves the comment after an alias, because the expanded value takes several lines. In a mapping, the comment
// goes behind the key; in a list, above the element.
func above(around *yaml.Node, i int) {
	n := around.Content[i]
	if around.Kind == yaml.MappingNode {
		around.Content[i-1].LineComment = n.LineComment
	} else if n.LineComment != "" {
		n.HeadComment = strings.TrimPrefix(n.HeadComment+"\n"+n.LineComment, "\n")
	}
	n.LineComment = ""
}

// take removes the items that leave the bootstrap from the document, and returns their nodes. If a list is empty
// afterwards, take removes the list, and its comments go to the first of its items. take returns nil if the lists
// of the document do not match the items.
func (d *document) take(items []*item) map[*item]*yaml.Node {
	root := d.node.Content[0]
	static := valueOf(root, "static_resources")
	if static == nil {
		return map[*item]*yaml.Node{}
	}
	nodes := make(map[*item]*yaml.Node)
	for i := 0; i+1 < len(static.Content); {
		key, list := static.Content[i], static.Content[i+1]
		of := slices.DeleteFunc(slices.Clone(items), func(i *item) bool { return i.remote || !named(key, string(i.Type.Static)) })
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

// taken moves the nodes of the leaving items from a list to nodes. It returns true if the list becomes empty.
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

// drop removes a field of the bootstrap. A nil document has no fields.
func (d *document) drop(name string) {
	if d == nil {
		return
	}
	root := d.node.Content[0]
	for i := 0; i+1 < len(root.Content); i += 2 {
		if named(root.Content[i], name) {
			root.Content = slices.Delete(root.Content, i, i+2)
			return
		}
	}
}

// dropElements removes elements of a list in a field of the bootstrap. gone has the indices of the elements. If the
// list becomes empty, dropElements removes the field. A nil document has no fields.
func (d *document) dropElements(field, list string, gone []int) {
	if d == nil {
		return
	}
	of := valueOf(d.node.Content[0], field)
	if of == nil {
		return
	}
	elements := valueOf(of, list)
	if elements == nil || elements.Kind != yaml.SequenceNode {
		return
	}
	var kept []*yaml.Node
	for n, element := range elements.Content {
		if !slices.Contains(gone, n) {
			kept = append(kept, element)
		}
	}
	if elements.Content = kept; len(kept) == 0 {
		d.drop(field)
	}
}

// comments are the comments of removed nodes.
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

// giveTo writes the comments above a node.
func (c *comments) giveTo(n *yaml.Node) {
	if len(*c) == 0 {
		return
	}
	if n.HeadComment != "" {
		*c = append(*c, n.HeadComment)
	}
	n.HeadComment = strings.Join(*c, "\n\n")
}

// resourceDocument returns the YAML document for a file with one resource.
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

// set writes a text at a path of a mapping. It does nothing if the path does not exist; the caller notices the
// difference when it reads the result.
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

// valueOf returns the value of a field, whose name may have either spelling, or nil.
func valueOf(mapping *yaml.Node, name string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if named(mapping.Content[i], name) {
			return mapping.Content[i+1]
		}
	}
	return nil
}

// named reports whether a key is the name of a field in one of its spellings.
func named(key *yaml.Node, name string) bool {
	return name != "" && (key.Value == name || key.Value == camelCase(name))
}

// camelCase returns the name of a field in JSON.
func camelCase(name string) string {
	parts := strings.Split(name, "_")
	for i, part := range parts[1:] {
		if part != "" {
			parts[i+1] = strings.ToUpper(part[:1]) + part[1:]
		}
	}
	return strings.Join(parts, "")
}
