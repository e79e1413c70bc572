package decode

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"unicode/utf8"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	reversev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/grpc_json_reverse_transcoder/v3"
	transcoderv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/grpc_json_transcoder/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/source/syntax"
	"xdspub/xds"
)

// inline puts the file that a message names by a relative path into the message: it stands
// in the source tree, beside the file that names it, and Envoy would look for it below its
// working directory. A certificate and its key then change in one step. Absolute paths are
// Envoy's own. It reports whether the message has changed.
func inline(d *decoder, r *xds.Resource, n *xds.Node, s *Source) bool {
	switch m := n.Message.(type) {
	case *corev3.DataSource:
		return isRelative(m) && !d.enough() && inlineSource(d, r, n, m, filepath.Dir(s.Name))
	case *tlsv3.TlsCertificate:
		held := append(m.GetSignedCertificateTimestamp(), m.GetCertificateChain(), m.GetPrivateKey(), m.GetPkcs12(), m.GetPassword(), m.GetOcspStaple())
		return slices.ContainsFunc(held, isRelative) && unwatch(&m.WatchedDirectory)
	case *tlsv3.CertificateValidationContext:
		return (isRelative(m.GetTrustedCa()) || isRelative(m.GetCrl())) && unwatch(&m.WatchedDirectory)
	}
	set, ok := DescriptorsOf(n.Message)
	if !ok || filepath.IsAbs(set.Path) || d.enough() {
		return false
	}
	data, ok := readInto(d, r, n, n.Path().Field(set.Field), set.Path, filepath.Dir(s.Name), maxDescriptors)
	if ok {
		set.Inline(data)
	}
	return ok
}

// Descriptors is the file of a descriptor set that a filter reads when Envoy makes the filter.
type Descriptors struct {
	Field string // that names the file
	Path  string
	// Inline replaces the path in the message by the content of the file.
	Inline func([]byte)
}

// DescriptorsOf returns the file of a descriptor set that Envoy opens for a message, or false. Of a
// transcoder without services Envoy opens none. Files of data sources are not among them.
func DescriptorsOf(m proto.Message) (Descriptors, bool) {
	switch m := m.(type) {
	case *transcoderv3.GrpcJsonTranscoder:
		return Descriptors{"proto_descriptor", m.GetProtoDescriptor(), func(data []byte) {
			m.DescriptorSet = &transcoderv3.GrpcJsonTranscoder_ProtoDescriptorBin{ProtoDescriptorBin: data}
		}}, m.GetProtoDescriptor() != "" && len(m.GetServices()) > 0
	case *reversev3.GrpcJsonReverseTranscoder:
		return Descriptors{"descriptor_path", m.GetDescriptorPath(), func(data []byte) {
			m.DescriptorPath, m.DescriptorBinary = "", data
		}}, m.GetDescriptorPath() != ""
	}
	return Descriptors{}, false
}

// mayNameFiles reports whether the resource in v may name a file by a relative path: its text
// shows a file name that is none of Envoy's own. Of a binary form, or where a text escapes
// letters, nobody knows.
func mayNameFiles(v value) bool {
	if v.text == nil || bytes.Contains(v.text, []byte(`\u006`)) {
		return true
	}
	for _, key := range []string{`filename"`, `proto_descriptor"`, `protoDescriptor"`, `descriptor_path"`, `descriptorPath"`} {
		for at := v.text; ; {
			_, rest, found := bytes.Cut(at, []byte(key))
			if !found {
				break
			}
			value, isKey := bytes.CutPrefix(bytes.TrimLeft(rest, " \t\r\n"), []byte(":"))
			if isKey && !bytes.HasPrefix(bytes.TrimLeft(value, " \t\r\n"), []byte(`"/`)) {
				return true
			}
			at = rest
		}
	}
	return false
}

func isRelative(s *corev3.DataSource) bool {
	name := s.GetFilename()
	return name != "" && !filepath.IsAbs(name)
}

// unwatch drops a relative watched directory, because its files are inlined.
func unwatch(w **corev3.WatchedDirectory) bool {
	if path := (*w).GetPath(); path == "" || filepath.IsAbs(path) {
		return false
	}
	*w = nil
	return true
}

func inlineSource(d *decoder, r *xds.Resource, n *xds.Node, m *corev3.DataSource, dir string) bool {
	data, ok := readInto(d, r, n, n.Path().Field("filename"), m.GetFilename(), dir, maxInlined)
	if ok {
		unwatch(&m.WatchedDirectory)
		SetData(m, n.Field(), data)
	}
	return ok
}

// readInto reads a file of at most that many bytes that a node names in the field at. It reports what
// keeps the file out of the resource.
func readInto(d *decoder, r *xds.Resource, n *xds.Node, at xds.Path, name, dir string, most int64) (data []byte, ok bool) {
	path := filepath.Join(dir, filepath.FromSlash(name))
	if d.named.Full() {
		f := r.Diagnostic(syntax.CodeTooLarge.Name, at, fmt.Sprintf("the files that resources name have more than %d bytes "+
			"together, each counted as often as it is used", d.named.Limit()))
		f.Help = "use a large file once, in a resource that the others refer to"
		d.report(f)
		return nil, false
	}
	data, stamp, err := readInlined(d.named, path, most)
	d.named.Take(len(data))
	d.file.Inlined = append(d.file.Inlined, Inlined{path, data, stamp, err, most})
	if outside, ok := errors.AsType[*OutsideError](err); ok {
		f := r.Diagnostic(CodeOutside.Name, at, fmt.Sprintf("%s: %v", name, outside))
		f.Help = OutsideHelp
		d.report(f)
		return nil, false
	}
	if d.named.StubSecrets() && n.OfSecret() && errors.Is(err, ErrMissing) {
		return nil, false
	}
	if err != nil {
		f := r.Diagnostic(codeMissingFile.Name, at, fmt.Sprintf("%s: %v", name, err))
		f.Help = fmt.Sprintf("a relative path starts at the file that names it: %s is looked for", path)
		d.report(f)
		return nil, false
	}
	return data, true
}

// SetData replaces the file name in a DataSource by the content of that file. field has the DataSource: Envoy takes
// an OCSP response as bytes only.
func SetData(m *corev3.DataSource, field protoreflect.FullName, data []byte) {
	if utf8.Valid(data) && field != "envoy.extensions.transport_sockets.tls.v3.TlsCertificate.ocsp_staple" {
		m.Specifier = &corev3.DataSource_InlineString{InlineString: string(data)}
	} else {
		m.Specifier = &corev3.DataSource_InlineBytes{InlineBytes: data}
	}
}
