package filter

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extractionv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/grpc_field_extraction/v3"
	reversev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/grpc_json_reverse_transcoder/v3"
	transcoderv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/grpc_json_transcoder/v3"
	messagev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/proto_message_extraction/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/validate"
	"xdspub/validate/facts"
	"xdspub/xds"
)

var protoDescriptor = &validate.Rule{
	Code: "proto-descriptor",
	Doc: `A proto descriptor set is invalid, or lacks a service, method or field.

grpc_json_transcoder, grpc_json_reverse_transcoder, grpc_field_extraction and
proto_message_extraction need a FileDescriptorSet with all imports, as protoc
--include_imports --descriptor_set_out writes it. Envoy rejects a set that it can't parse
("Unable to parse proto descriptor") or that lacks imports ("Unable to build proto descriptor
pool"), and services, methods and fields that are not in it ("Could not find 'a.B' in the
proto descriptor"). Write names of services and methods with dots, without a leading dot.
Without any service or method, imports may be missing.

The two extraction filters read the set from a file or from inline_bytes, not from text. In
a source tree, a file by a relative path is read into the resource. A file by an absolute path is
read where a bootstrap is followed, and else left for Envoy.`,
	Messages: []protoreflect.FullName{
		"envoy.extensions.filters.http.grpc_field_extraction.v3.GrpcFieldExtractionConfig",
		"envoy.extensions.filters.http.grpc_json_reverse_transcoder.v3.GrpcJsonReverseTranscoder",
		"envoy.extensions.filters.http.grpc_json_transcoder.v3.GrpcJsonTranscoder",
		"envoy.extensions.filters.http.proto_message_extraction.v3.ProtoMessageExtractionConfig",
	},
	Node: func(p *validate.Pass, n *xds.Node) {
		wrong := func(path xds.Path, message, help string) {
			p.Report(validate.Finding{Path: n.Path().Join(path), Message: message, Help: help})
		}
		switch m := n.Message.(type) {
		case *transcoderv3.GrpcJsonTranscoder:
			// Without services, Envoy does not read the descriptor set.
			if _, ok := m.GetDescriptorSet().(*transcoderv3.GrpcJsonTranscoder_ProtoDescriptorBin); ok && len(m.GetServices()) > 0 {
				checkTranscoder(m, wrong)
			}
		case *reversev3.GrpcJsonReverseTranscoder:
			switch binary := m.GetDescriptorBinary(); {
			case m.GetDescriptorPath() != "":
			case len(binary) == 0:
				wrong("", "the filter has no descriptor set", "set descriptor_path or descriptor_binary")
			default:
				if _, err := readDescriptors(binary, true); err != nil {
					wrong("descriptor_binary", err.Error(), describeHelp)
				}
			}
		case *extractionv3.GrpcFieldExtractionConfig:
			if m.GetDescriptorSet() == nil {
				return // reported by field-constraint
			}
			methods := make(map[string]extracted)
			for name, e := range m.GetExtractionsByMethod() {
				methods[name] = extracted{request: slices.Sorted(maps.Keys(e.GetRequestFieldExtractions()))}
			}
			extraction{"descriptor_set", m.GetDescriptorSet(), "extractions_by_method", "request_field_extractions", methods}.check(wrong)
		case *messagev3.ProtoMessageExtractionConfig:
			methods := make(map[string]extracted)
			for name, e := range m.GetExtractionByMethod() {
				methods[name] = extracted{
					request:  slices.Sorted(maps.Keys(e.GetRequestExtractionByField())),
					response: slices.Sorted(maps.Keys(e.GetResponseExtractionByField())),
				}
			}
			if m.GetProtoDescriptorTypedMetadata() == "" {
				extraction{"data_source", m.GetDataSource(), "extraction_by_method", "request_extraction_by_field", methods}.check(wrong)
			}
		}
	},
}

const describeHelp = "create it with protoc --include_imports --descriptor_set_out"

func checkTranscoder(m *transcoderv3.GrpcJsonTranscoder, wrong func(path xds.Path, message, help string)) {
	set, err := readDescriptors(m.GetProtoDescriptorBin(), true)
	if err != nil {
		wrong("proto_descriptor_bin", err.Error(), describeHelp)
		return
	}
	help := "the set has " + facts.Quoted(slices.Sorted(maps.Keys(set.services)))
	for i, service := range m.GetServices() {
		if _, ok := set.services[service]; !ok {
			wrong(xds.Path("services").Index(i), fmt.Sprintf("service %q is not in the descriptor set", service), help)
		}
	}
}

// extracted are the paths of the fields that a filter reads from the request and the response of a method.
type extracted struct{ request, response []string }

// extraction is what a filter reads from messages that a descriptor set describes. sourceField, methodsField and
// requestField are the names of the fields of the configuration.
type extraction struct {
	sourceField  xds.Path
	source       *corev3.DataSource
	methodsField xds.Path
	requestField string
	methods      map[string]extracted
}

func (e extraction) check(wrong func(path xds.Path, message, help string)) {
	if e.source.GetFilename() != "" {
		return
	}
	binary, ok := e.source.GetSpecifier().(*corev3.DataSource_InlineBytes)
	if !ok {
		wrong(e.sourceField, "the descriptor set is neither a file nor inline_bytes", describeHelp)
		return
	}
	set, err := readDescriptors(binary.InlineBytes, len(e.methods) > 0)
	if err != nil {
		wrong(e.sourceField, err.Error(), describeHelp)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(e.methods)) {
		at := e.methodsField.Key(name)
		dot := strings.LastIndexByte(name, '.')
		method := set.services[name[:max(dot, 0)]][name[dot+1:]]
		if method == nil {
			wrong(at, fmt.Sprintf("method %q is not in the descriptor set", name), "write it as package.Service.Method")
			continue
		}
		checkFields(set, method.input, e.methods[name].request, at.Field(e.requestField), wrong)
		checkFields(set, method.output, e.methods[name].response, at.Field("response_extraction_by_field"), wrong)
	}
}

// checkFields checks the first field of each path. A path of a message that the set lacks is not checked.
func checkFields(set descriptors, message string, paths []string, at xds.Path, wrong func(path xds.Path, message, help string)) {
	fields := set.messages[strings.TrimPrefix(message, ".")]
	for _, path := range paths {
		first, _, _ := strings.Cut(path, ".")
		if fields != nil && !fields[first] {
			wrong(at.Key(path), fmt.Sprintf("message %s has no field %q", strings.TrimPrefix(message, "."), first), "use the field names of the .proto file")
		}
	}
}
