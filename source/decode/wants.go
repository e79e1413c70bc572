package decode

import (
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	"xdspub/envoy/envoyapi"
	"xdspub/source/syntax"
)

// wish is a value in a field of another kind, with the wanted kind and its form in the source.
type wish struct {
	field  string // as the source writes its name
	fd     protoreflect.FieldDescriptor
	of     protoreflect.MessageDescriptor // of the value; nil for a scalar
	isList bool                           // or a map: the value as a whole
	isMap  bool
	got    string // JSON, or how a text proto has it; of an object or a list its bracket
	text   string // got without quotes
	format syntax.Format
}

// wishAt is the wish for a value at a path.
func (s spot) wishAt(field, got string, tokens []string, f syntax.Format) wish {
	w := wish{field: field, fd: s.field, got: got, text: unquotedJSON(got), format: f}
	if s.field == nil {
		return w
	}
	element := false
	if n := len(tokens); n > 0 {
		_, err := strconv.Atoi(tokens[n-1])
		element = err == nil || s.field.IsMap() && fieldNamed(s.around[len(s.around)-1], tokens[n-1]) != s.field
	}
	w.isMap, w.isList = s.field.IsMap() && !element, s.field.IsList() && !element
	if w.of = s.field.Message(); s.field.IsMap() && element {
		w.fd = s.field.MapValue()
		w.of = w.fd.Message()
	}
	return w
}

// element is the wish for one value of a list or a map.
func (w wish) element() wish {
	if w.isMap {
		w.fd = w.fd.MapValue()
		w.of = w.fd.Message()
	}
	w.isList, w.isMap = false, false
	return w
}

const (
	durationName = "google.protobuf.Duration"
	anyName      = "google.protobuf.Any"
	headerOption = "envoy.config.core.v3.HeaderValueOption"
)

// kind is that of the scalar, also of one in a wrapper; false for a message.
func (w wish) kind() (protoreflect.Kind, bool) {
	switch {
	case w.fd == nil:
		return 0, false
	case w.of == nil:
		return w.fd.Kind(), true
	case isWrapper(w.of):
		return w.of.Fields().ByName("value").Kind(), true
	}
	return 0, false
}

// what names the kind of value that the field wants.
func (w wish) what() string {
	kind, isScalar := w.kind()
	switch {
	case w.fd == nil:
		return "another kind of value"
	case w.isList:
		return "a list"
	case w.isMap:
		return "an object"
	case isScalar && w.of != nil && w.format == syntax.TextProto:
		return "a message with a value"
	case isScalar:
		return kindWords(kind)
	case w.of.FullName() == durationName:
		return "a duration"
	case w.of.FullName() == anyName:
		return `an object with an "@type"`
	case w.of.FullName() == "google.protobuf.ListValue":
		return "a list"
	case w.of.FullName() == "google.protobuf.Timestamp":
		return `a time such as "2030-01-02T15:04:05Z"`
	}
	return "an object"
}

func kindWords(kind protoreflect.Kind) string {
	switch kind {
	case protoreflect.StringKind:
		return "text"
	case protoreflect.BytesKind:
		return "bytes in base64"
	case protoreflect.BoolKind:
		return "true or false"
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		return "a number"
	case protoreflect.EnumKind:
		return "the name of a value"
	}
	return "a whole number"
}

// write returns the value to write instead, or "" if unknown.
func (w wish) write() string {
	kind, isScalar := w.kind()
	bare := strings.Trim(w.text, `"'`)
	switch {
	case w.fd == nil:
		return ""
	case isVariable.MatchString(bare):
		return "write the value here: neither xdspub nor Envoy fills in variables"
	case w.isList:
		return w.writeList()
	case w.isMap:
		return "write a key and a value for each entry"
	case w.got == "[" && !isScalar && w.of.FullName() != durationName:
		return "remove the dash or the brackets: there is one " + w.field
	case isScalar && w.of != nil && w.format == syntax.TextProto:
		return fmt.Sprintf("write %s { value: %s }", w.field, syntax.Shorten(w.got))
	case isScalar && (w.got == "{" || w.got == "["):
		return w.writeOne()
	case isScalar:
		return w.writeScalar(kind, bare)
	case w.of.FullName() == durationName:
		return w.writeDuration(bare)
	}
	return w.writeMessage(bare)
}

var isVariable = regexp.MustCompile(`\$\{|^\$[A-Za-z_]|\$\(|\{\{|\{%|<%|^@@?\w+@@?$|^%\(\w+\)s$`)

// pair is a field with a value, as the source's format has them.
func (w wish) pair(value string, isText bool) string {
	switch {
	case w.format == syntax.JSON && isText:
		return fmt.Sprintf("%q: %q", w.field, value)
	case w.format == syntax.JSON:
		return fmt.Sprintf("%q: %s", w.field, value)
	case w.format == syntax.TextProto && isText:
		return fmt.Sprintf("%s: %q", w.field, value)
	}
	return w.field + ": " + value
}

const addDash = `put "- " in front of the first key of each entry`

func (w wish) writeList() string {
	switch {
	case w.of != nil && w.of.FullName() == headerOption && w.got == "{":
		return "write a list, with an object in it for each header: {header: {key: …, value: …}}"
	case w.format == syntax.TextProto:
		return fmt.Sprintf("write %s [ … ]", w.field)
	case w.format == syntax.YAML && w.got == "{":
		return addDash + ", and indent its other keys as that one"
	case w.got == "{" || w.of != nil && !isSpecial(w.of):
		return "put brackets around it: " + w.pair("[{…}]", false)
	case w.format == syntax.YAML:
		return "put brackets around it: " + w.pair("["+syntax.Shorten(w.text)+"]", false)
	}
	return "put brackets around it: " + w.pair("["+syntax.Shorten(w.got)+"]", false)
}

// writeOne is what to write instead of an object or a list of which nobody can tell the value.
func (w wish) writeOne() string {
	help := "write the value itself"
	if w.got == "[" {
		help = "write one value, without a list"
	}
	if enum := w.fd.Enum(); enum != nil {
		if names := valuesOf(enum); len(names) > 0 && len(names) <= mostFields {
			help += ": one of " + strings.Join(names, ", ")
		}
	}
	return help
}

func (w wish) writeScalar(kind protoreflect.Kind, bare string) string {
	switch kind {
	case protoreflect.StringKind:
		if w.got == "null" {
			return "write text, or remove the field"
		}
		if bare == "" {
			return "put it in quotes"
		}
		return fmt.Sprintf("put it in quotes: %s", strconv.Quote(bare))
	case protoreflect.BytesKind:
		return "encode it in base64, on one line; for text, use inline_string if the message has it"
	case protoreflect.BoolKind:
		if value := boolean(bare, nil); value != nil {
			return "write " + w.pair(string(value), false)
		}
		switch strings.ToLower(bare) {
		case "on", "enabled", "enable":
			return "write " + w.pair("true", false)
		case "off", "disabled", "disable":
			return "write " + w.pair("false", false)
		}
		return "write true or false, without quotes"
	}
	return w.writeNumber(kind, bare)
}

var (
	sizeText   = regexp.MustCompile(`(?i)^(\d+)\s*(k|m|g)i?b?$`)
	rangeText  = regexp.MustCompile(`^\d+\s*(?:-|\.\.|:)\s*\d+$`)
	grouped    = regexp.MustCompile(`^\d{1,3}(?:[,'_ ]\d{3})+$`)
	percentage = regexp.MustCompile(`^(\d+(?:\.\d+)?)\s*%$`)
	sizeShifts = map[string]uint{"k": 10, "m": 20, "g": 30}
	// ports maps the common names of ports to numbers.
	ports = map[string]int{
		"http": 80, "https": 443, "ssh": 22, "dns": 53, "postgres": 5432, "postgresql": 5432, "mysql": 3306,
		"redis": 6379, "mongodb": 27017, "kafka": 9092, "smtp": 25, "ldap": 389, "ldaps": 636, "amqp": 5672,
	}
)

func (w wish) writeNumber(kind protoreflect.Kind, bare string) string {
	if n, err := strconv.ParseInt(strings.TrimSpace(bare), 0, 64); err == nil && strconv.FormatInt(n, 10) != bare {
		return "write it in decimal, without quotes: " + w.pair(strconv.FormatInt(n, 10), false)
	}
	value := 0.0
	if n, err := strconv.ParseFloat(bare, 64); err == nil {
		value = n
	}
	switch port, isPort := ports[strings.ToLower(bare)]; {
	case isPort && strings.Contains(w.field, "port"):
		return "write the number: " + w.pair(strconv.Itoa(port), false)
	case strings.Contains(strings.ToLower(w.field), "port") && rangeText.MatchString(bare):
		return "write one port; other fields, such as port_range, have ranges"
	case sizeText.MatchString(bare):
		found := sizeText.FindStringSubmatch(bare)
		n, err := strconv.ParseUint(found[1], 10, 32)
		if err != nil {
			break
		}
		return fmt.Sprintf("write the number of bytes: %s", w.pair(strconv.FormatUint(n<<sizeShifts[strings.ToLower(found[2])], 10), false))
	case grouped.MatchString(bare):
		return "write the digits alone: " + w.pair(strings.NewReplacer(",", "", "'", "", "_", "", " ", "").Replace(bare), false)
	case percentage.MatchString(bare):
		return "write the number alone: " + w.pair(percentage.FindStringSubmatch(bare)[1], false)
	case value < 0 && (kind == protoreflect.Uint32Kind || kind == protoreflect.Uint64Kind):
		return "write a number that is not below 0"
	case value > 1<<32-1 && kind == protoreflect.Uint32Kind:
		return "the largest number is 4294967295"
	case (value > 1<<31-1 || value < -1<<31) && kind == protoreflect.Int32Kind:
		return "write a number from -2147483648 to 2147483647"
	case value != float64(int64(value)) && kind != protoreflect.DoubleKind && kind != protoreflect.FloatKind:
		return "write it without a fraction"
	case strings.EqualFold(bare, "unlimited") || strings.EqualFold(bare, "max") || strings.EqualFold(bare, "infinity"):
		return "write a number; the largest is 4294967295"
	}
	return "write digits, without a unit"
}

var durationPart = regexp.MustCompile(`(?i)^\s*([0-9]*\.?[0-9]+)\s*(ns|us|µs|milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d|)\s*`)

// durationOf reads a duration as people write it; a number without a unit counts seconds.
func durationOf(text string) (d time.Duration, ok bool) {
	for text = strings.TrimSpace(text); text != ""; ok = true {
		found := durationPart.FindStringSubmatch(text)
		if found == nil {
			return 0, false
		}
		n, err := strconv.ParseFloat(found[1], 64)
		if err != nil {
			return 0, false
		}
		unit := time.Second
		switch u := strings.ToLower(found[2]); {
		case u == "ns":
			unit = time.Nanosecond
		case u == "us" || u == "µs":
			unit = time.Microsecond
		case strings.HasPrefix(u, "ms") || strings.HasPrefix(u, "milli"):
			unit = time.Millisecond
		case strings.HasPrefix(u, "m"):
			unit = time.Minute
		case strings.HasPrefix(u, "h"):
			unit = time.Hour
		case strings.HasPrefix(u, "d"):
			unit = 24 * time.Hour
		}
		if n*float64(unit) > float64(1<<62) {
			return 0, false
		}
		d += time.Duration(n * float64(unit))
		text = text[len(found[0]):]
	}
	return d, ok
}

func (w wish) writeDuration(bare string) string {
	d, ok := durationOf(bare)
	seconds := strings.TrimSuffix(strings.TrimRight(strconv.FormatFloat(d.Seconds(), 'f', 9, 64), "0"), ".")
	switch {
	case w.format == syntax.TextProto && !ok:
		return fmt.Sprintf("write seconds, such as %s { seconds: 1 }", w.field)
	case w.format == syntax.TextProto:
		var parts []string
		if s := d / time.Second; s != 0 {
			parts = append(parts, fmt.Sprintf("seconds: %d", s))
		}
		if n := d % time.Second; n != 0 || len(parts) == 0 {
			parts = append(parts, fmt.Sprintf("nanos: %d", n))
		}
		return fmt.Sprintf("write %s { %s }", w.field, strings.Join(parts, " "))
	case !ok:
		return "write seconds with an s, such as 1.5s"
	}
	return "write it in seconds, with an s: " + w.pair(seconds+"s", true)
}

var addressText = regexp.MustCompile(`^(?:[a-z]+://)?(?:\[([0-9a-fA-F:.]+)\]|([^\s:/\[\]]+))(?::(\d+))?/?$`)

// shorthands gives, for messages often written as a scalar, the long form; %s is the scalar.
var shorthands = map[protoreflect.FullName]string{
	"envoy.config.core.v3.RuntimeFractionalPercent": "{default_value: {numerator: %s, denominator: HUNDRED}}",
	"envoy.type.v3.FractionalPercent":               "{numerator: %s, denominator: HUNDRED}",
	"envoy.type.v3.Percent":                         "{value: %s}",
	"envoy.config.core.v3.RuntimeFeatureFlag":       "{default_value: %s, runtime_key: …}",
	"envoy.config.core.v3.RuntimeUInt32":            "{default_value: %s, runtime_key: …}",
	"envoy.config.core.v3.RuntimeDouble":            "{default_value: %s, runtime_key: …}",
	"envoy.config.core.v3.RuntimePercent":           "{default_value: {value: %s}, runtime_key: …}",
	"envoy.type.matcher.v3.StringMatcher":           "{exact: %s}",
	"envoy.type.matcher.v3.RegexMatcher":            "{regex: %s}",
	"envoy.config.route.v3.RouteAction":             "{cluster: %s}",
	"envoy.config.route.v3.RouteMatch":              "{prefix: %s}",
	"envoy.config.core.v3.HttpUri":                  "{uri: %s, cluster: …, timeout: 1s}",
}

// writeMessage returns the object to write instead of a scalar.
func (w wish) writeMessage(bare string) string {
	if n := percentage.FindStringSubmatch(bare); n != nil {
		bare = n[1]
	}
	switch name := w.of.FullName(); {
	case name == anyName:
		return `write {"@type": type.googleapis.com/…, …}`
	case w.format == syntax.TextProto:
		return fmt.Sprintf("write %s { … }%s", w.field, w.fields())
	case name == "envoy.config.core.v3.Address" && strings.HasPrefix(bare, "/"):
		return w.braces(fmt.Sprintf("{pipe: {path: %s}}", bare))
	case name == "envoy.config.core.v3.Address":
		host, port := "127.0.0.1", "…"
		if found := addressText.FindStringSubmatch(bare); found != nil {
			host = found[1] + found[2]
			if found[3] != "" {
				port = found[3]
			}
		}
		if strings.Contains(host, ":") && net.ParseIP(host) != nil {
			host = strconv.Quote(host)
		}
		return w.braces(fmt.Sprintf("{socket_address: {address: %s, port_value: %s}}", host, port))
	case name == "envoy.config.core.v3.DataSource" && strings.Contains(bare, "/"):
		return w.braces(fmt.Sprintf("{filename: %s}", bare))
	case name == "envoy.config.core.v3.DataSource":
		return w.braces("{inline_string: …}")
	case shorthands[name] != "" && bare != "" && len(bare) < 80 && w.got != "null":
		return w.braces(fmt.Sprintf(shorthands[name], bare))
	}
	return "write an object" + w.fields()
}

var (
	yamlWord = regexp.MustCompile(`([A-Za-z_]+): `)
	yamlText = regexp.MustCompile(`: ([^{},"]+)`)
	bareWord = regexp.MustCompile(`^(?:\d+(?:\.\d+)?|…|true|false)$`)
)

// braces is a field with an object that is written in YAML, as the source's format has it.
func (w wish) braces(object string) string {
	if w.format != syntax.JSON {
		return "write " + w.field + ": " + object
	}
	object = yamlText.ReplaceAllStringFunc(object, func(value string) string {
		if value = strings.TrimPrefix(value, ": "); !bareWord.MatchString(value) {
			value = strconv.Quote(value)
		}
		return ": " + value
	})
	return fmt.Sprintf("write %q: %s", w.field, yamlWord.ReplaceAllString(object, `"$1": `))
}

// fields names the fields of the message, if they are few.
func (w wish) fields() string {
	if w.of.FullName() == "google.protobuf.Struct" {
		return ""
	}
	return fieldsOf(w.of)
}

// mostFields is how many fields of a message a help lists.
const mostFields = 6

// fieldsOf lists the fields of a message that has few of them.
func fieldsOf(md protoreflect.MessageDescriptor) string {
	fields := md.Fields()
	if fields.Len() == 0 || fields.Len() > mostFields {
		return ""
	}
	var names []string
	for i := range fields.Len() {
		names = append(names, string(fields.Get(i).Name()))
	}
	if len(names) == 1 {
		return ": its field is " + names[0]
	}
	return ": its fields are " + strings.Join(names, ", ")
}

// typeFor returns the likely type of an extension's configuration without @type, by the name of the extension
// or by the present fields; "" if unknown.
func typeFor(v *envoyapi.Version, s spot, name string, fields []string) protoreflect.FullName {
	for _, category := range categoriesAt(v, s) {
		if e, ok := v.ExtensionNamed(category, name); ok && e.Config != "" {
			if s.field.IsMap() && e.Route != "" {
				return e.Route
			}
			return e.Config
		}
	}
	if len(fields) == 0 {
		return ""
	}
	var found protoreflect.FullName
	for _, category := range categoriesAt(v, s) {
		for _, e := range v.Extensions(category) {
			switch {
			case e.Config == "" || e.Config == found || !hasFields(e.Config, fields):
			case found != "":
				return ""
			default:
				found = e.Config
			}
		}
	}
	return found
}

// hasFields reports whether a message has fields of all these names.
func hasFields(message protoreflect.FullName, names []string) bool {
	mt, err := (resolver{}).FindMessageByName(message)
	return err == nil && !slices.ContainsFunc(names, func(name string) bool { return fieldNamed(mt.Descriptor(), name) == nil })
}

// categoriesAt are the kinds of extensions whose configuration a field takes: one of its own
// message, or of the message around that has the name and the configuration.
func categoriesAt(v *envoyapi.Version, s spot) (list []string) {
	if s.field == nil {
		return nil
	}
	last := len(s.around) - 1
	downstream := slices.ContainsFunc(s.around, func(md protoreflect.MessageDescriptor) bool {
		return md.FullName() == "envoy.config.listener.v3.FilterChain"
	})
	add := func(p envoyapi.ExtensionPoint) {
		switch {
		case p.Category == "envoy.transport_sockets" && downstream:
			list = append(list, p.Category+".downstream")
		case p.Category == "envoy.transport_sockets":
			list = append(list, p.Category+".upstream")
		default:
			list = append(list, p.Category)
		}
		list = append(list, p.Also...)
	}
	for _, p := range v.ExtensionPointsOf(s.around[last].FullName()) {
		if p.Field == s.field.FullName() {
			add(p)
		}
	}
	if len(list) > 0 || last == 0 {
		return list
	}
	for _, p := range v.ExtensionPointsOf(s.around[last-1].FullName()) {
		if fd := s.around[last-1].Fields().ByName(p.Field.Name()); fd != nil && fd.Message() == s.around[last] {
			add(p)
		}
	}
	return list
}
