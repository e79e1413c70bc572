package load

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"xdspub/diag"
	"xdspub/xds"
)

// resolver finds the types that an @type may name. Envoy refuses a URL without a
// host, which protojson would take.
type resolver struct{}

func (resolver) FindMessageByName(name protoreflect.FullName) (protoreflect.MessageType, error) {
	return protoregistry.GlobalTypes.FindMessageByName(name)
}

func (resolver) FindMessageByURL(url string) (protoreflect.MessageType, error) {
	if strings.LastIndexByte(url, '/') < 1 {
		return nil, protoregistry.NotFound
	}
	return protoregistry.GlobalTypes.FindMessageByURL(url)
}

func (resolver) FindExtensionByName(name protoreflect.FullName) (protoreflect.ExtensionType, error) {
	return protoregistry.GlobalTypes.FindExtensionByName(name)
}

func (resolver) FindExtensionByNumber(message protoreflect.FullName, n protoreflect.FieldNumber) (protoreflect.ExtensionType, error) {
	return protoregistry.GlobalTypes.FindExtensionByNumber(message, n)
}

// typeHelp says what to write instead of a type URL that nothing is known for.
func typeHelp(url string) string {
	switch {
	case strings.LastIndexByte(url, '/') < 1:
		return fmt.Sprintf("write it with a host, as Envoy wants it: %s%s", xds.URLPrefix, strings.TrimPrefix(url, "/"))
	case versionTwo.MatchString(url):
		return "Envoy has dropped the v2 API: use the v3 message of the same purpose"
	default:
		return "Envoy 1.40.0 (without contrib extensions) would refuse the whole file; check the spelling"
	}
}

var versionTwo = regexp.MustCompile(`/envoy\.(api\.v2\b|.*\.v2(alpha\d*)?\b)`)

// protojson words its errors differently from build to build; what is relied on
// here is the place in parentheses and the sense of a few phrases, both guarded
// by tests.
var (
	protoPlace   = regexp.MustCompile(`\(line (\d+):(\d+)\):?\s*`)
	protoPrefix  = regexp.MustCompile(`^proto:\s*`)
	unknownField = regexp.MustCompile(`^unknown field "?([^"]*)"?`)
	unresolved   = regexp.MustCompile(`^unable to resolve "([^"]*)"`)
	badEnum      = regexp.MustCompile(`^invalid value for enum (?:type|field [^:]*): (.*)$`)
	badValue     = regexp.MustCompile(`^invalid value for (\S+) (?:type|field ([^:]*)): (.*)$`)
	badToken     = regexp.MustCompile(`^unexpected token (.*)$`)
	setTwice     = regexp.MustCompile(`^error parsing "?([^",]*)"?, oneof (\S+) is already set`)
	duplicate    = regexp.MustCompile(`^duplicate (?:field|map key) "?([^"]*)"?`)
)

// decodeError turns what protojson says of v into a finding at its place.
func (v value) decodeError(m proto.Message, err error) diag.Diagnostic {
	reason := strings.ReplaceAll(err.Error(), "\u00a0", " ")
	var tokens []string
	key := false
	if place := protoPlace.FindStringSubmatch(reason); place != nil {
		line, _ := strconv.Atoi(place[1])
		column, _ := strconv.Atoi(place[2])
		tokens, key = pathAt(v.text, offsetOf(v.text, line, column))
	}
	reason = protoPrefix.ReplaceAllString(protoPlace.ReplaceAllString(reason, ""), "")
	reason = strings.TrimPrefix(reason, "syntax error ")

	field := ""
	if len(tokens) > 0 {
		field = tokens[len(tokens)-1]
		if _, err := strconv.Atoi(field); err == nil && len(tokens) > 1 {
			field = tokens[len(tokens)-2]
		}
	}
	sensitive := slices.ContainsFunc(tokens, xds.SensitiveFieldName) || xds.TypeOf(m.ProtoReflect().Descriptor().FullName()) == xds.Secret
	quote := func(text string) string {
		if sensitive {
			return "(not shown)"
		}
		return text
	}
	code, message, help := codeInvalidValue, reason, ""
	switch {
	case unknownField.MatchString(reason):
		code = codeUnknownField
		message = fmt.Sprintf("unknown field %q", unknownField.FindStringSubmatch(reason)[1])
		help = "Envoy would drop it without an error; check the spelling and the indentation"
	case unresolved.MatchString(reason):
		url := unresolved.FindStringSubmatch(reason)[1]
		code, message, help = codeUnknownType, fmt.Sprintf("unknown type %q", url), typeHelp(url)
		tokens, key = append(tokens, "@type"), false
	case strings.HasPrefix(reason, `missing "@type" field`):
		code, message = codeUnknownType, "the configuration of an extension needs an @type"
	case badEnum.MatchString(reason):
		code = codeUnknownEnum
		message = fmt.Sprintf("%s has no value %s", field, quote(badEnum.FindStringSubmatch(reason)[1]))
		help = "Envoy would take the default instead, without an error; enum names are written in capitals"
	case setTwice.MatchString(reason):
		found := setTwice.FindStringSubmatch(reason)
		message = fmt.Sprintf("%s can't stand beside another field of %s", found[1], found[2])
		help = "keep one of them"
		key = true
	case duplicate.MatchString(reason):
		code, message = codeDuplicateKey, fmt.Sprintf("field %q is set twice, in two spellings", duplicate.FindStringSubmatch(reason)[1])
		help = "keep one of them"
	case badValue.MatchString(reason):
		found := badValue.FindStringSubmatch(reason)
		message = fmt.Sprintf("%s wants a value of type %s, not %s", field, found[1], quote(found[3]))
		if found[1] == "string" {
			help = "put the value in quotes"
		}
	case badToken.MatchString(reason):
		got := tokenName(badToken.FindStringSubmatch(reason)[1], quote)
		message = fmt.Sprintf("%s has the wrong kind of value: %s", field, got)
		if want := wantedKind(m, tokens); want != "" {
			message = fmt.Sprintf("%s wants %s, not %s", field, want, got)
		}
	default:
		message = quote(reason)
	}
	f := v.doc.source.finding(code, v.doc.position(append(steps(v.path), tokens...), key), message, help)
	f.Sensitive = sensitive
	f.Path = strings.Join(tokens, ".")
	if t := xds.TypeOf(m.ProtoReflect().Descriptor().FullName()); t != nil {
		f.Resource = diag.Resource{Type: t.URL(), Name: nameIn(v.text, t)}
	}
	return f
}

// tokenName is what a person calls the first token of a value.
func tokenName(token string, quote func(string) string) string {
	switch token {
	case "{":
		return "an object"
	case "[":
		return "a list"
	default:
		return quote(token)
	}
}

// wantedKind says in words what stands at a path of m, as far as the path does
// not lead into an Any.
func wantedKind(m proto.Message, tokens []string) string {
	md := m.ProtoReflect().Descriptor()
	for i, token := range tokens {
		if _, err := strconv.Atoi(token); err == nil {
			continue
		}
		fd := md.Fields().ByJSONName(token)
		if fd == nil {
			fd = md.Fields().ByTextName(token)
		}
		if fd == nil {
			return ""
		}
		if i == len(tokens)-1 {
			switch {
			case fd.IsMap():
				return "an object"
			case fd.IsList():
				return "a list"
			case fd.Message() != nil && !strings.HasPrefix(string(fd.Message().FullName()), "google.protobuf."):
				return "an object"
			}
			return ""
		}
		if md = fd.Message(); md == nil || fd.IsMap() {
			return ""
		}
	}
	return ""
}

// nameIn is the name of a resource that could not be decoded.
func nameIn(text []byte, t *xds.Type) string {
	var members map[string]json.RawMessage
	var name string
	if json.Unmarshal(text, &members) == nil {
		for key, raw := range members {
			if sameField(key, string(t.Name)) && json.Unmarshal(raw, &name) != nil {
				return ""
			}
		}
	}
	return name
}

// offsetOf is the byte offset of a line and a column, which counts runes, both
// from 1.
func offsetOf(text []byte, line, column int) int {
	offset := 0
	for ; line > 1; line-- {
		i := strings.IndexByte(string(text[offset:]), '\n')
		if i < 0 {
			break
		}
		offset += i + 1
	}
	for _, r := range string(text[offset:]) {
		if column--; column < 1 {
			break
		}
		offset += len(string(r))
	}
	return offset
}
