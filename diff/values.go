package diff

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/diag"
)

// fingerprint returns the text that stands for content: the certificates in it, or the beginning of its hash. The
// text of equal content is equal.
func fingerprint(content []byte) string {
	sum := sha256.Sum256(content)
	hash := "sha256:" + hex.EncodeToString(sum[:6])
	var certificates []string
	for rest := content; len(certificates) < mostCertificates; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			certificates = append(certificates, certificate(c))
		}
	}
	if len(certificates) == 0 {
		return hash
	}
	return strings.Join(certificates, "; ") + " (" + hash + ")"
}

// mostCertificates is the largest number of certificates that a fingerprint describes. A bundle of CAs has hundreds.
const mostCertificates = 4

func certificate(c *x509.Certificate) string {
	return fmt.Sprintf("certificate of %s, serial %x, until %s",
		diag.ClipLine(c.Subject.String(), diag.MaxWord), c.SerialNumber, c.NotAfter.UTC().Format(time.RFC3339))
}

// text returns the value of a field, or of an element of the field, as JSON.
func (c *comparison) text(fd protoreflect.FieldDescriptor, v protoreflect.Value) string {
	switch of := v.Interface().(type) {
	case protoreflect.Message:
		return c.message(of)
	case protoreflect.List:
		parts := make([]string, 0, of.Len())
		for i := range of.Len() {
			if parts = append(parts, c.text(fd, of.Get(i))); i > mostValue {
				break // clip cuts the text
			}
		}
		return clip("[" + strings.Join(parts, ", ") + "]")
	case protoreflect.Map:
		byText := make(map[string]string)
		of.Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
			byText[k.String()] = c.text(fd.MapValue(), v)
			return true
		})
		var parts []string
		for _, k := range keys(byText, nil) {
			parts = append(parts, quoted(k)+": "+byText[k])
		}
		return clip("{" + strings.Join(parts, ", ") + "}")
	}
	return scalar(fd, v)
}

// scalar returns a scalar as JSON.
func scalar(fd protoreflect.FieldDescriptor, v protoreflect.Value) string {
	switch of := v.Interface().(type) {
	case string:
		return clip(quoted(of))
	case []byte:
		if bytes.HasPrefix(of, []byte("sha256:")) { // of xds.Resource.Concealed
			return quoted(string(of))
		}
		return quoted(fingerprint(of))
	case protoreflect.EnumNumber:
		if name := fd.Enum().Values().ByNumber(of); name != nil {
			return string(name.Name())
		}
		return strconv.Itoa(int(of))
	}
	return clip(v.String())
}

func quoted(text string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // each text has a form in JSON
	return strings.TrimSpace(b.String())
}

// message returns a message as JSON in one line.
func (c *comparison) message(m protoreflect.Message) string {
	o := protojson.MarshalOptions{UseProtoNames: true}
	if c.registry != nil {
		o.Resolver = c.registry
	}
	b, err := o.Marshal(m.Interface())
	if err != nil {
		return "unreadable content " + fingerprint([]byte(canonical(m)))
	}
	var compact bytes.Buffer
	if json.Compact(&compact, b) != nil { // protojson puts spaces at random
		return "unreadable content " + fingerprint(b)
	}
	return clip(compact.String())
}

// defaults are the values that Envoy takes for absent fields, as far as tests of this repository have asked Envoy:
// validate/transition has the fields of listeners, setup/importer those of endpoints.
var defaults = map[protoreflect.FullName]string{
	"envoy.config.listener.v3.Listener.enable_reuse_port":                           "true",
	"envoy.config.listener.v3.Listener.bind_to_port":                                "true",
	"envoy.config.endpoint.v3.LbEndpoint.load_balancing_weight":                     "1",
	"envoy.config.endpoint.v3.ClusterLoadAssignment.Policy.overprovisioning_factor": "140",
	"envoy.config.route.v3.RouteMatch.case_sensitive":                               "true",
}

// defaultOf returns the value that an absent field stands for: the zero value of a field without presence, or the value
// in defaults. Without either it returns "".
func defaultOf(fd protoreflect.FieldDescriptor) string {
	if text, ok := defaults[fd.FullName()]; ok {
		return text
	}
	if fd.HasPresence() || fd.IsList() || fd.IsMap() {
		return ""
	}
	return scalar(fd, fd.Default())
}
