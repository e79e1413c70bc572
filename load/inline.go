package load

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"unicode/utf8"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"xdspub/internal/fspath"
	"xdspub/safefile"
	"xdspub/xds"
)

// maxInlined bounds a file that is put into a resource: a certificate bundle of a
// whole system has a quarter of it.
const maxInlined = 1 << 20

// inlined is a file that went into a resource, and what it held, or why it could not be
// read.
type inlined struct {
	path string
	bytesOf
	err error
}

// same reports whether the file holds what it held.
func (i *inlined) same(t *tree) bool {
	if info, err := t.stat(i.path); err == nil && i.stamp.holds(info) {
		return true
	}
	read, err := t.readInlined(i.path)
	if !bytes.Equal(read.data, i.data) || fmt.Sprint(err) != fmt.Sprint(i.err) {
		return false
	}
	i.stamp = read.stamp
	return true
}

// inline puts the file that a message names by a relative path into the message: it stands
// in the source tree, beside the file that names it, and Envoy would look for it below its
// working directory. A certificate and its key then change in one step. Absolute paths are
// Envoy's own. It reports whether the message has changed.
func (d *decoder) inline(r *xds.Resource, n *xds.Node, s *source) bool {
	switch m := n.Message.(type) {
	case *corev3.DataSource:
		return isRelative(m) && !d.enough() && d.inlineSource(r, n, m, filepath.Dir(s.name))
	case *tlsv3.TlsCertificate:
		held := append(m.GetSignedCertificateTimestamp(), m.GetCertificateChain(), m.GetPrivateKey(), m.GetPkcs12(), m.GetPassword(), m.GetOcspStaple())
		return slices.ContainsFunc(held, isRelative) && unwatch(&m.WatchedDirectory)
	case *tlsv3.CertificateValidationContext:
		return (isRelative(m.GetTrustedCa()) || isRelative(m.GetCrl())) && unwatch(&m.WatchedDirectory)
	}
	return false
}

// mayNameFiles reports whether the resource in v may name a file by a relative path: its text
// shows a file name that is none of Envoy's own. Of a binary form, or where a text escapes
// letters, nobody knows.
func (v value) mayNameFiles() bool {
	if v.text == nil || bytes.Contains(v.text, []byte(`\u006`)) {
		return true
	}
	key := []byte(`filename"`)
	for at := v.text; ; {
		_, rest, found := bytes.Cut(at, key)
		if !found {
			return false
		}
		value, isKey := bytes.CutPrefix(bytes.TrimLeft(rest, " \t\r\n"), []byte(":"))
		if isKey && !bytes.HasPrefix(bytes.TrimLeft(value, " \t\r\n"), []byte(`"/`)) {
			return true
		}
		at = rest
	}
}

func isRelative(s *corev3.DataSource) bool {
	name := s.GetFilename()
	return name != "" && !filepath.IsAbs(name)
}

// unwatch drops a relative directory: what was to be watched there is inline.
func unwatch(w **corev3.WatchedDirectory) bool {
	if path := (*w).GetPath(); path == "" || filepath.IsAbs(path) {
		return false
	}
	*w = nil
	return true
}

func (d *decoder) inlineSource(r *xds.Resource, n *xds.Node, m *corev3.DataSource, dir string) bool {
	at, path := n.Path(), filepath.Join(dir, filepath.FromSlash(m.GetFilename()))
	if d.tree.full() {
		f := r.Diagnostic(codeTooLarge.Name, at.Field("filename"), fmt.Sprintf("the files that resources name have more than %d bytes together, each counted as often as it is used", d.tree.most))
		f.Help = "use a large file once, in a resource that the others refer to"
		d.report(f)
		return false
	}
	read, err := d.tree.readInlined(path)
	d.tree.take(len(read.data))
	d.file.inlined = append(d.file.inlined, inlined{path, read, err})
	if outside, ok := errors.AsType[*OutsideError](err); ok {
		f := r.Diagnostic(codeOutside.Name, at.Field("filename"), fmt.Sprintf("%s: %v", m.GetFilename(), outside))
		f.Help = outsideHelp
		d.report(f)
		return false
	}
	if d.tree.stubSecrets && n.OfSecret() && errors.Is(err, ErrMissing) {
		return false
	}
	if err != nil {
		f := r.Diagnostic(codeMissingFile.Name, at.Field("filename"), fmt.Sprintf("%s: %v", m.GetFilename(), err))
		f.Help = fmt.Sprintf("a relative path starts at the file that names it: %s is looked for", path)
		d.report(f)
		return false
	}
	unwatch(&m.WatchedDirectory)
	SetData(m, read.data)
	return true
}

// SetData replaces the file name in a DataSource by the content of that file.
func SetData(m *corev3.DataSource, data []byte) {
	if utf8.Valid(data) {
		m.Specifier = &corev3.DataSource_InlineString{InlineString: string(data)}
	} else {
		m.Specifier = &corev3.DataSource_InlineBytes{InlineBytes: data}
	}
}

// readInlined is ReadData for a file of the tree, which must hold something.
func (t *tree) readInlined(path string) (bytesOf, error) {
	read, err := t.read(path, maxInlined)
	if err == nil && len(read.data) == 0 {
		return bytesOf{}, errors.New("the file is empty")
	}
	return read, reason(err)
}

// ReadData reads a file that is to be put into a resource. Its errors are for a finding that
// names the file: they do not name it.
func ReadData(path string) ([]byte, error) {
	data, err := safefile.Read(path, maxInlined)
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
