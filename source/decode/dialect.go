package decode

import (
	"bytes"
	"fmt"
	"regexp"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"xdspub/diag"
	"xdspub/source/syntax"
	"xdspub/xds"
)

// firstDocument is the document of a YAML file that Envoy reads; what it loses of the
// file is reported. Tried on Envoy 1.40.0 (docs/evidence/envoy-behaviour.md).
func firstDocument(d *decoder, docs []*document) []*document {
	if len(docs) == 0 {
		return nil
	}
	for _, lost := range docs[1:] {
		if json, wrong := lost.AsYAML().ToJSON(); len(wrong) == 0 && string(json) == "null" {
			continue // a comment behind a marker
		}
		f := lost.readOtherwise(lost.Point(0), "Envoy reads the first document of a file only: this one is lost",
			"put the resources of all documents into one list of resources")
		if lost.source.isBootstrap {
			f.Severity, f.Help = diag.Warning, "put all of the bootstrap into one document"
		} else {
			d.file.Partial = true
		}
		d.report(f)
	}
	doc := docs[0]
	if doc.AsYAML().Merges() {
		doc.AsYAML().EachMapping(func(n *yaml.Node) {
			for i := 0; i+1 < len(n.Content); i += 2 {
				if syntax.IsMerge(n.Content[i]) {
					does := "it ignores the merged fields"
					if doc.source.isBootstrap {
						does = "it starts only if it is in a Struct or a map, and ignores the merged fields"
					}
					d.report(doc.readOtherwise(doc.AsYAML().NodeRange(n.Content[i]), "Envoy has no merge keys: "+does,
						"write the fields out; anchors and aliases of whole values work"))
				}
			}
		})
	}
	if bytes.Contains(doc.Text, []byte("!!str")) && doc.YAML() != nil {
		doc.AsYAML().EachScalar(func(n *yaml.Node) {
			if n.Tag == "!!str" && !syntax.IsText(n) {
				d.report(doc.readOtherwise(doc.AsYAML().NodeRange(n), fmt.Sprintf("Envoy does not support tags: it does not "+
					"read %s as text", n.Value), "put it in quotes"))
			}
		})
	}
	return docs[:1]
}

// holdsOddDuration reports whether a text of JSON matches oddDuration; nearly every
// resource is asked.
func holdsOddDuration(text []byte) bool {
	end := []byte(`s"`)
	for pos := 0; ; {
		at := bytes.Index(text[pos:], end)
		if at < 0 {
			return false
		}
		at += pos
		pos = at + len(end)
		if at > 0 && (syntax.IsDigit(text[at-1]) || text[at-1] == '.' || text[at-1] == '+') &&
			oddDuration.Match(text[max(bytes.LastIndexByte(text[:at], '"'), 0):pos]) {
			return true
		}
	}
}

func (d *document) readOtherwise(p diag.Range, message, help string) diag.Diagnostic {
	return d.source.Finding(codeReadOtherwise, p, message, help)
}

var (
	// oddDuration is a duration of JSON that protojson reads and Envoy does not.
	oddDuration = regexp.MustCompile(`"-?(?:\+[0-9.]*|\.[0-9]+|[0-9]+\.)s"`)
)

// readsAlike reports what in a decoded message Envoy's parser refuses, or takes for
// something else.
func readsAlike(d *decoder, v value, m proto.Message) {
	if holdsOddDuration(v.text) {
		tree := syntax.ParseJSON(v.text)
		v.doc.source.resolver().Walk(m, func(n *xds.Node) {
			if _, is := n.Message.(*durationpb.Duration); !is {
				return
			}
			raw, err := jsontext.NewDecoder(bytes.NewReader(v.text[tree.Find(steps(n.Path())):])).ReadValue()
			if err == nil && oddDuration.Match(raw) {
				d.report(v.findingIn(n.Path(), false, codeReadOtherwise, fmt.Sprintf("Envoy can't read "+
					"the duration %s", raw), `write digits before and after the point, and no +: "0.5s"`))
			}
		})
	}
	if v.doc.source.Format == syntax.YAML {
		oddNumbers(d, v, m)
		structNumbers(d, v, m)
	}
}

// oddNumbers reports numbers in the fields of a decoded message that Envoy reads as text. In a text field,
// such a number is fine.
func oddNumbers(d *decoder, v value, m proto.Message) {
	if !v.doc.Odd() {
		return
	}
	check := func(at xds.Path) {
		n := v.doc.AsYAML().NodeAt(steps(v.path.Join(at)))
		if n != nil && n.Kind == yaml.ScalarNode && n.Style == 0 && syntax.NumberToGo.MatchString(n.Value) {
			d.report(v.findingIn(at, false, codeReadOtherwise, fmt.Sprintf("Envoy reads %s as text, "+
				"not as a number", n.Value), "write the number in decimal or as 0x…"))
		}
	}
	v.doc.source.resolver().Walk(m, func(n *xds.Node) {
		if isWrapper(n.Message.ProtoReflect().Descriptor()) {
			at := n.Path()
			if n.Parent != nil && n.Parent.Name() == anyName {
				at = at.Field("value")
			}
			check(at)
			return
		}
		n.Message.ProtoReflect().Range(func(fd protoreflect.FieldDescriptor, value protoreflect.Value) bool {
			switch fd.Kind() {
			case protoreflect.StringKind, protoreflect.BytesKind, protoreflect.BoolKind, protoreflect.MessageKind, protoreflect.GroupKind:
				return true
			}
			path := n.Path().Field(string(fd.Name()))
			switch {
			case fd.IsList():
				for i := range value.List().Len() {
					check(path.Index(i))
				}
			case !fd.IsMap():
				check(path)
			}
			return true
		})
	})
}

// structNumbers warns of numbers in a Struct that a YAML file turns into text.
func structNumbers(d *decoder, v value, m proto.Message) {
	check := func(at xds.Path) {
		n := v.doc.AsYAML().NodeAt(steps(v.path.Join(at)))
		if n == nil || n.Kind != yaml.ScalarNode || n.Style != 0 {
			return
		}
		if syntax.IsText(n) {
			f := v.findingIn(at, false, codeReadOtherwise, fmt.Sprintf("Envoy reads the number %s in a YAML "+
				"file as text", n.Value), "use a .json file, where it stays a number, or put it in quotes")
			f.Severity = diag.Warning
			d.report(f)
		}
	}
	var look func(value *structpb.Value, at xds.Path)
	fields := func(s *structpb.Struct, at xds.Path) {
		for key, value := range s.GetFields() {
			look(value, at.Key(key))
		}
	}
	look = func(value *structpb.Value, at xds.Path) {
		switch kind := value.GetKind().(type) {
		case *structpb.Value_NumberValue:
			check(at)
		case *structpb.Value_StructValue:
			fields(kind.StructValue, at)
		case *structpb.Value_ListValue:
			for i, element := range kind.ListValue.GetValues() {
				look(element, at.Index(i))
			}
		}
	}
	structs.Walk(m, func(n *xds.Node) {
		switch s := n.Message.(type) {
		case *structpb.Struct:
			fields(s, n.Path())
		case *structpb.Value:
			look(s, n.Path())
		}
	})
}

var structs = xds.NewSearch("google.protobuf.Struct", "google.protobuf.Value")
