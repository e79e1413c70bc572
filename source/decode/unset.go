package decode

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/envoy/envoyapi"
	"xdspub/source/syntax"
	"xdspub/xds"
)

// unsetFields looks for Unset in the text of a resource, beside the types of its messages: a message
// does not tell false from nothing, and to an Envoy that lacks the field both are unknown.
type unsetFields struct {
	envoy *envoyapi.Version
	text  []byte
	found []xds.Unset
}

// unset returns the Unset of the resource in v. A binary form has none, because encoders write no defaults.
func unset(v value, md protoreflect.MessageDescriptor) []xds.Unset {
	s := v.doc.source
	u := unsetFields{envoy: s.envoy, text: v.text}
	switch {
	case !u.envoy.LacksFields(), s.Format == syntax.Binary:
	case s.Format == syntax.TextProto:
		u.text = v.doc.Text
		if n, _ := v.doc.Tree().Find(u.text, steps(v.path)); v.doc.Tree().Whole {
			u.textFields(md, n, "")
		}
	default:
		root := syntax.ParseJSON(v.text)
		u.jsonFields(md, &root, "")
	}
	return u.found
}

// lacks records a field that the Envoy lacks, if the field is empty. Rules see fields with content.
func (u *unsetFields) lacks(fd protoreflect.FieldDescriptor, path xds.Path, nothing func() bool) bool {
	_, lacks := u.envoy.Lacks(fd.FullName())
	if lacks && nothing() {
		u.found = append(u.found, xds.Unset{Path: path, Field: fd.FullName()})
	}
	return lacks
}

// judged reports whether what a field holds is judged as a part of this resource.
func judged(fd protoreflect.FieldDescriptor) bool {
	switch fd.FullName() {
	case "envoy.config.bootstrap.v3.Bootstrap.static_resources", // resources of their own
		"envoy.config.core.v3.Metadata.typed_filter_metadata": // Envoy never looks at it
		return false
	}
	return fd.Message() != nil && (!fd.IsMap() || fd.MapValue().Message() != nil)
}

func (u *unsetFields) raw(n *syntax.JSONNode) jsontext.Value {
	return u.text[n.Value:max(n.Value, n.End)]
}

func (u *unsetFields) jsonMessage(md protoreflect.MessageDescriptor, n *syntax.JSONNode, at xds.Path) {
	if md.FullName() == anyName {
		c := n.Child("@type")
		if c == nil {
			return
		}
		mt, err := resolver{}.FindMessageByURL(syntax.Unquote(u.raw(c)))
		if err != nil {
			return
		}
		md = mt.Descriptor()
	}
	if !isSpecial(md) {
		u.jsonFields(md, n, at)
	}
}

func (u *unsetFields) jsonFields(md protoreflect.MessageDescriptor, n *syntax.JSONNode, at xds.Path) {
	for i := range n.Children {
		c := &n.Children[i]
		fd := fieldNamed(md, c.Name)
		if fd == nil {
			continue
		}
		path := at.Field(string(fd.Name()))
		if u.lacks(fd, path, func() bool { return u.isNothing(fd, c) }) || !judged(fd) {
			continue
		}
		switch {
		case fd.IsMap():
			for i := range c.Children {
				u.jsonMessage(fd.MapValue().Message(), &c.Children[i], path.Key(c.Children[i].Name))
			}
		case !fd.IsList():
			u.jsonMessage(fd.Message(), c, path)
		case u.raw(c).Kind() == '[':
			for i := range c.Children {
				u.jsonMessage(fd.Message(), &c.Children[i], path.Index(i))
			}
		default: // Envoy takes one value for a list of it
			u.jsonMessage(fd.Message(), c, path.Index(0))
		}
	}
}

// isNothing reports whether a value in the text leaves its field unset.
func (u *unsetFields) isNothing(fd protoreflect.FieldDescriptor, n *syntax.JSONNode) bool {
	raw := u.raw(n)
	switch kind := raw.Kind(); {
	case kind == 'n':
		return true
	case fd.HasPresence():
		return false
	case fd.IsList() || fd.IsMap():
		return len(n.Children) == 0 && (kind == '[' || kind == '{')
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		text = string(raw)
	}
	return isZero(fd, text)
}

// isZero reports whether a word is the default of a field without presence.
func isZero(fd protoreflect.FieldDescriptor, word string) bool {
	if fd.Enum() != nil {
		if value := fd.Enum().Values().ByName(protoreflect.Name(word)); value != nil {
			return value.Number() == 0
		}
	}
	switch fd.Kind() {
	case protoreflect.StringKind, protoreflect.BytesKind:
		return word == ""
	case protoreflect.BoolKind:
		set, err := strconv.ParseBool(strings.ToLower(word))
		return err == nil && !set
	}
	number, err := strconv.ParseFloat(word, 64)
	return err == nil && number == 0
}

func (u *unsetFields) textFields(md protoreflect.MessageDescriptor, n *syntax.TextNode, at xds.Path) {
	count := make(map[protoreflect.FieldDescriptor]int) // values of each list
	for i := range n.Children {
		c := &n.Children[i]
		if c.IsType() {
			if mt, err := (resolver{}).FindMessageByURL(c.URL()); err == nil {
				u.textFields(mt.Descriptor(), c, at)
			}
			continue
		}
		fd := md.Fields().ByTextName(c.Name)
		if fd == nil {
			continue
		}
		path := at.Field(string(fd.Name()))
		if u.lacks(fd, path, func() bool { return u.isNothingInText(fd, c) }) || !judged(fd) {
			continue
		}
		for _, value := range c.AppendValues(nil) {
			switch {
			case fd.IsMap():
				u.textEntry(fd, value, path)
				continue
			case fd.IsList():
				u.textFields(fd.Message(), value, path.Index(count[fd]))
				count[fd]++
			default:
				u.textFields(fd.Message(), value, path)
			}
		}
	}
}

func (u *unsetFields) textEntry(fd protoreflect.FieldDescriptor, entry *syntax.TextNode, at xds.Path) {
	if !entry.IsEntry() {
		return
	}
	key := entry.Named("key")[0]
	u.textFields(fd.MapValue().Message(), entry.Named("value")[0], at.Key(syntax.Unquoted(u.text[key.Value:key.End])))
}

func (u *unsetFields) isNothingInText(fd protoreflect.FieldDescriptor, n *syntax.TextNode) bool {
	switch {
	case fd.HasPresence():
		return false
	case fd.IsList() || fd.IsMap():
		return n.List && len(n.Children) == 0
	}
	word := bytes.TrimSpace(u.text[n.Value:n.End])
	if len(word) > 0 && (word[0] == '"' || word[0] == '\'') {
		return syntax.Unquoted(word) == ""
	}
	return isZero(fd, string(word))
}
