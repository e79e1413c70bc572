package bootstrap

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
	"xdspub/source/load"
	"xdspub/xds"
)

// Codes are the codes of the findings of this package.
var Codes = []diag.Code{codeConflict}

var codeConflict = diag.Code{Name: "bootstrap-conflict", Doc: `A bootstrap sets a field to another value than xdspub bootstrap envoy writes.

With --from FILE the command adds to the bootstrap in FILE, and changes nothing in it. Where both
set a field, such as node.id or dynamic_resources.cds_config, or have a cluster, a runtime layer or
an overload action of one name, they have to agree. Nothing is written until one of them gives
way: remove the field from FILE, or choose other options.`}

// Base is a bootstrap that the user wrote.
type Base struct {
	// Message is the decoded bootstrap.
	Message *bootstrapv3.Bootstrap
	// Line returns the source line at a position.
	Line  func(diag.Position) (string, bool)
	input load.Input
}

// Input returns the input that the Base was read from. Merge writes the same format.
func (b *Base) Input() load.Input { return b.input }

// Read reads a Base in YAML or JSON. The Result has the findings. The Base is nil if a finding is an error.
func Read(in load.Input) (*Base, *load.Result) {
	b, result := load.ParseBootstrap(in)
	if b == nil || result.Diagnostics.HasErrors() {
		return nil, result
	}
	return &Base{b, result.Line, in}, result
}

// Merge adds to a Base the settings that Envoy returns for the options. It returns the bootstrap in the format of
// the Base. The settings of the Base stay, in their order and with their comments. If the Base has another value
// for a setting, Merge returns conflicts and no text.
func (b *Base) Merge(o EnvoyOptions) (text []byte, conflicts diag.List, err error) {
	fail := func(err error) ([]byte, diag.List, error) {
		return nil, nil, fmt.Errorf("envoy bootstrap: %w", err)
	}
	add, err := envoyMessage(o)
	if err != nil {
		return fail(err)
	}
	b.keepServers(add, o.Unpublished)
	if limits := new(bootstrapv3.Admin); add.Admin == nil && b.Message.GetAdmin() != nil {
		if o.limitAdmin(limits); proto.Size(limits) > 0 {
			add.Admin = limits
		}
	}
	added, err := YAML(nil, add)
	if err != nil {
		return fail(err)
	}
	base, err := b.document()
	if err != nil {
		return fail(err)
	}
	var of yaml.Node
	if err := yaml.Unmarshal(added, &of); err != nil {
		return fail(err)
	}
	m := merger{file: b.input.Name}
	m.message(parsed{base.Content[0], b.Message.ProtoReflect()}, parsed{of.Content[0], add.ProtoReflect()}, "")
	if len(m.conflicts) > 0 {
		return nil, m.conflicts.Sort(), nil
	}
	if text, err = b.encode(base); err != nil {
		return fail(err)
	}
	return text, nil, b.stays(text)
}

// keepServers removes from add the subscriptions to unpublished types that the Base gets from a server.
func (b *Base) keepServers(add *bootstrapv3.Bootstrap, unpublished []*xds.Type) {
	for _, t := range unpublished {
		switch {
		case !xds.ServedBy(b.Message, t):
		case t == xds.Cluster:
			add.DynamicResources.CdsConfig = nil
		case t == xds.Listener:
			add.DynamicResources.LdsConfig = nil
		}
	}
}

// document returns the text of the Base as a document with one mapping.
func (b *Base) document() (base *yaml.Node, err error) {
	base = new(yaml.Node)
	if b.input.Format == "json" {
		var object *yaml.Node
		if object, err = nodeOf(b.input.Data); err == nil {
			base = &yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{object}}
		}
	} else {
		documents := yaml.NewDecoder(bytes.NewReader(b.input.Data))
		if err = documents.Decode(base); err == nil && documents.Decode(new(yaml.Node)) != io.EOF {
			return nil, fmt.Errorf("%s has more than one document: Envoy reads only one of them, so remove the others", b.input.Name)
		}
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s can be read, but not be added to: %w", b.input.Name, err)
	case len(base.Content) != 1 || base.Content[0].Kind != yaml.MappingNode:
		return nil, fmt.Errorf("%s is empty: leave --from out", b.input.Name)
	}
	return base, nil
}

// encode returns the text of a document in the format of the Base.
func (b *Base) encode(document *yaml.Node) ([]byte, error) {
	if b.input.Format == "json" {
		return jsonOf(document.Content[0])
	}
	return EncodeYAML(document)
}

// EncodeYAML returns the text of a document that was read from YAML. Comments stay, and lists keep their
// indentation.
func EncodeYAML(document *yaml.Node) ([]byte, error) {
	var text strings.Builder
	enc := yaml.NewEncoder(&text)
	enc.SetIndent(2)
	if compact(document) {
		enc.CompactSeqIndent()
	}
	if err := enc.Encode(document); err != nil {
		return nil, err
	}
	return []byte(text.String()), enc.Close()
}

// compact reports whether the first list that is the value of a key begins in the column of the key.
func compact(n *yaml.Node) bool {
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && child.Kind == yaml.SequenceNode && child.Style&yaml.FlowStyle == 0 {
			return child.Column == n.Content[i-1].Column
		}
		if len(child.Content) > 0 && child.Style&yaml.FlowStyle == 0 {
			return compact(child)
		}
	}
	return true
}

// stays returns an error if text lacks a setting of the Base, because YAML may change when it is read and written.
func (b *Base) stays(text []byte) error {
	merged, result := load.ParseBootstrap(load.Input{Name: b.input.Name, Format: b.input.Format, Data: text, Envoy: b.input.Envoy})
	if merged == nil || result.Diagnostics.HasErrors() || !holds(merged.ProtoReflect(), b.Message.ProtoReflect()) {
		return fmt.Errorf("envoy bootstrap: %s can't be added to without a loss: write it in a simpler form of YAML, without anchors and tags", b.input.Name)
	}
	return nil
}

// holds reports whether all has every value of part. Lists of all may have further elements, but the elements of
// part must be in the same order.
func holds(all, part protoreflect.Message) bool {
	same := true
	part.Range(func(fd protoreflect.FieldDescriptor, want protoreflect.Value) bool {
		got := all.Get(fd)
		switch {
		case !all.Has(fd):
			same = false
		case fd.IsList():
			i := 0
			for j := 0; j < got.List().Len() && i < want.List().Len(); j++ {
				if got.List().Get(j).Equal(want.List().Get(i)) {
					i++
				}
			}
			same = i == want.List().Len()
		case fd.IsMap():
			want.Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
				same = same && got.Map().Has(k) && got.Map().Get(k).Equal(v)
				return same
			})
		case fd.Message() != nil:
			same = got.Equal(want) || grows(fd.Message()) && holds(got.Message(), want.Message())
		default:
			same = got.Equal(want)
		}
		return same
	})
	return same
}

// grows reports whether Merge may add fields to messages of a type. Messages of other types come unchanged from the
// user or from this package.
func grows(md protoreflect.MessageDescriptor) bool {
	return slices.Contains([]protoreflect.FullName{
		"envoy.config.bootstrap.v3.Admin",
		"envoy.config.bootstrap.v3.Bootstrap.DynamicResources",
		"envoy.config.bootstrap.v3.Bootstrap.StaticResources",
		"envoy.config.bootstrap.v3.LayeredRuntime",
		"envoy.config.core.v3.Locality",
		"envoy.config.core.v3.Node",
		"envoy.config.metrics.v3.StatsConfig",
		"envoy.config.overload.v3.OverloadManager",
		"google.protobuf.Struct",
	}, md.FullName())
}

// merger adds nodes to the nodes of a file, and collects conflicts.
type merger struct {
	file      string
	conflicts diag.List
}

// parsed is a message with its YAML node.
type parsed struct {
	node    *yaml.Node
	message protoreflect.Message
}

// message adds the fields of want to have. path is the path of have, with a dot at its end.
func (m *merger) message(have, want parsed, path string) {
	if len(have.node.Content) == 0 {
		have.node.Style = 0 // write the new fields on lines of their own
	}
	if want.message.Descriptor().FullName() == "google.protobuf.Struct" {
		m.entries(have, want, path)
		return
	}
	for i := 0; i < len(want.node.Content); i += 2 {
		key, value := want.node.Content[i], want.node.Content[i+1]
		at := path + key.Value
		fd := want.message.Descriptor().Fields().ByName(protoreflect.Name(key.Value))
		mine, is, be := valueOf(have.node, key.Value, fd.JSONName()), have.message.Get(fd), want.message.Get(fd)
		switch {
		case mine == nil:
			have.node.Content = append(have.node.Content, key, value)
		case !have.message.Has(fd) && mine.Kind != yaml.AliasNode: // the value is empty, such as [] or ""
			value.HeadComment, value.LineComment, value.FootComment = mine.HeadComment, mine.LineComment, mine.FootComment
			*mine = *value
		case at == "overload_manager.refresh_interval": // the user's interval stays: ours is only a common choice
		case fd.IsList() && fd.Name() != "allow_paths": // the elements of allow_paths have no names
			m.list(mine, value, is.List(), be.List(), at)
		case is.Equal(be):
		case !fd.IsList() && fd.Message() != nil && grows(fd.Message()) && mine.Kind == yaml.MappingNode:
			m.message(parsed{mine, is.Message()}, parsed{value, be.Message()}, at+".")
		default:
			m.conflict(mine, at+" is set already, to another value")
		}
	}
}

// entries adds the entries of want to have. Both are Structs.
func (m *merger) entries(have, want parsed, path string) {
	fields := want.message.Descriptor().Fields().ByName("fields")
	for i := 0; i < len(want.node.Content); i += 2 {
		key, value := want.node.Content[i], want.node.Content[i+1]
		name := protoreflect.ValueOfString(key.Value).MapKey()
		switch mine := valueOf(have.node, key.Value, key.Value); {
		case mine == nil:
			have.node.Content = append(have.node.Content, key, value)
		case !have.message.Get(fields).Map().Get(name).Equal(want.message.Get(fields).Map().Get(name)):
			m.conflict(mine, path+key.Value+" is set already, to another value")
		}
	}
}

// list adds the missing elements of want to have. An element of have with the same name must be equal.
func (m *merger) list(node, add *yaml.Node, have, want protoreflect.List, path string) {
	if node.Kind != yaml.SequenceNode || len(node.Content) != have.Len() {
		m.conflict(node, path+" can't be added to in this form, such as an alias")
		return
	}
	before := have.Len() // the index at which elements are added
	for i := range have.Len() {
		if admin := have.Get(i).Message(); isAdminLayer(admin) {
			before = i // the admin layer must stay the last, because later layers win
		}
	}
	var added []*yaml.Node
	for j := range want.Len() {
		element := want.Get(j).Message()
		i := indexOf(have, element)
		switch {
		case isAdminLayer(element) && before < have.Len(): // have has an admin layer, perhaps of another name
		case i < 0:
			added = append(added, add.Content[j])
		case !have.Get(i).Equal(want.Get(j)):
			m.conflict(node.Content[i], fmt.Sprintf("%s has another %q already", path, nameOf(element)))
		}
	}
	node.Content = slices.Insert(node.Content, before, added...)
}

func isAdminLayer(element protoreflect.Message) bool {
	layer, ok := element.Interface().(*bootstrapv3.RuntimeLayer)
	return ok && layer.GetAdminLayer() != nil
}

// indexOf returns the index of the element of list with the name of element, or -1.
func indexOf(list protoreflect.List, element protoreflect.Message) int {
	for i := range list.Len() {
		if nameOf(list.Get(i).Message()) == nameOf(element) {
			return i
		}
	}
	return -1
}

// nameOf returns the name of an element of a list, or "" if its type has no name.
func nameOf(element protoreflect.Message) string {
	for _, name := range []protoreflect.Name{"name", "tag_name"} {
		if fd := element.Descriptor().Fields().ByName(name); fd != nil {
			return element.Get(fd).String()
		}
	}
	return ""
}

// valueOf returns the value of a key, in one of two spellings, or nil.
func valueOf(mapping *yaml.Node, name, jsonName string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if key := mapping.Content[i].Value; key == name || key == jsonName {
			return mapping.Content[i+1]
		}
	}
	return nil
}

func (m *merger) conflict(at *yaml.Node, message string) {
	m.conflicts = append(m.conflicts, diag.Diagnostic{
		Code: codeConflict.Name, Position: diag.Position{File: m.file, Line: at.Line, Column: at.Column},
		Message: message, Help: "remove it here, or choose options that agree with it",
	})
}
