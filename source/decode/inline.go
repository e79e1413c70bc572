package decode

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"syscall"
	"unicode/utf8"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	reversev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/grpc_json_reverse_transcoder/v3"
	transcoderv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/grpc_json_transcoder/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/internal/fspath"
	"xdspub/internal/safefile"
	"xdspub/source/syntax"
	"xdspub/xds"
)

// maxInlined bounds a file that is put into a resource: a certificate bundle of a
// whole system has a quarter of it. maxDescriptors bounds a file of a descriptor set, which has the
// comments of its sources.
const (
	maxInlined     = 1 << 20
	maxDescriptors = 16 << 20
)

// Files are the files that resources of a source tree name by relative paths.
type Files interface {
	// Read reads a file of at most most bytes. The error is an *OutsideError if the path leads out of the tree.
	Read(path string, most int64) ([]byte, safefile.Stamp, error)
	// Take counts read bytes. Full reports whether the counted bytes exceed Limit.
	Take(bytes int)
	Full() bool
	Limit() int64
	// StubSecrets reports whether files of secrets may be missing.
	StubSecrets() bool
	// IsRoot reports whether a file is in the root folder of the tree.
	IsRoot(path string) bool
	// Ended reports whether nobody waits for the result any more.
	Ended() bool
}

// OutsideError means that a name in a source tree leads out of it.
type OutsideError struct {
	// To is the target of the link.
	To string
}

func (e *OutsideError) Error() string { return "it leads out of the source tree, to " + e.To }

// OutsideHelp is the help for an OutsideError.
const OutsideHelp = "move its target into the tree, or allow its folder by --allow-path"

// Inlined is a file that was inlined into a resource, with its content, or with the reason why it could not be
// read.
type Inlined struct {
	Path  string
	Data  []byte
	Stamp safefile.Stamp
	Err   error
	Most  int64 // the limit of the read, in bytes
}

// Unchanged reads the file again, unless the Stamp shows that the file is unchanged, and reports whether the content
// is the same. info are the present metadata; nil if there are none. The Stamp is that of the last read.
func (i *Inlined) Unchanged(files Files, info fs.FileInfo) bool {
	if info != nil && i.Stamp.Holds(info) {
		return true
	}
	data, stamp, err := readInlined(files, i.Path, i.Most)
	if !bytes.Equal(data, i.Data) || fmt.Sprint(err) != fmt.Sprint(i.Err) {
		return false
	}
	i.Stamp = stamp
	return true
}

// Failure returns the error of an inlined file if the disk or the system has failed. Such an error is no fault of the
// source tree, and passes without a change of the tree.
func (f *File) Failure() error {
	for _, i := range f.Inlined {
		if err := Failure(i.Path, i.Err); err != nil {
			return err
		}
	}
	return nil
}

// Failure returns an error that names a file if err, the error of reading the file, means that the disk or the
// system has failed. Failure returns nil for other errors, which are faults of the configuration that names
// the file.
func Failure(path string, err error) error {
	if errno, ok := errors.AsType[syscall.Errno](err); ok && slices.Contains(failures[:], errno) {
		return &fs.PathError{Op: "read", Path: path, Err: errno}
	}
	return nil
}

// failures are the errors of a disk, of a file server, and of a system that lacks memory or descriptors.
var failures = [...]syscall.Errno{syscall.EIO, syscall.ESTALE, syscall.ETIMEDOUT, syscall.ENOTCONN, syscall.EHOSTDOWN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE}

// inline puts the file that a message names by a relative path into the message: it stands
// in the source tree, beside the file that names it, and Envoy would look for it below its
// working directory. A certificate and its key then change in one step. Absolute paths are
// Envoy's own. It reports whether the message has changed.
func (d *decoder) inline(r *xds.Resource, n *xds.Node, s *Source) bool {
	switch m := n.Message.(type) {
	case *corev3.DataSource:
		return isRelative(m) && !d.enough() && d.inlineSource(r, n, m, filepath.Dir(s.Name))
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
	data, ok := d.readInto(r, n, n.Path().Field(set.Field), set.Path, filepath.Dir(s.Name), maxDescriptors)
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
func (v value) mayNameFiles() bool {
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

func (d *decoder) inlineSource(r *xds.Resource, n *xds.Node, m *corev3.DataSource, dir string) bool {
	data, ok := d.readInto(r, n, n.Path().Field("filename"), m.GetFilename(), dir, maxInlined)
	if ok {
		unwatch(&m.WatchedDirectory)
		SetData(m, n.Field(), data)
	}
	return ok
}

// readInto reads a file of at most that many bytes that a node names in the field at. It reports what
// keeps the file out of the resource.
func (d *decoder) readInto(r *xds.Resource, n *xds.Node, at xds.Path, name, dir string, most int64) (data []byte, ok bool) {
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

// readInlined reads a file of at most most bytes, which must hold something.
func readInlined(files Files, path string, most int64) (data []byte, stamp safefile.Stamp, err error) {
	data, stamp, err = files.Read(path, most)
	if err == nil && len(data) == 0 {
		return nil, safefile.Stamp{}, errors.New("the file is empty")
	}
	return data, stamp, reason(err)
}

// ReadData reads a file to inline into a resource. The error is for a finding that names the file, so the
// error does not name it.
func ReadData(path string) ([]byte, error) {
	data, err := safefile.Read(path, maxInlined)
	return data, reason(err)
}

// ReadDescriptors is ReadData for a file of a descriptor set.
func ReadDescriptors(path string) ([]byte, error) {
	data, err := safefile.Read(path, maxDescriptors)
	return data, reason(err)
}

// ErrMissing is the error of ReadData for a file that does not exist.
var ErrMissing = errors.New("the file does not exist")

// reason is an error without the path in it, in plain words where the file does not exist.
func reason(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return ErrMissing
	}
	return fspath.Reason(err)
}
