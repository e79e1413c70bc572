package facts

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"

	"xdspub/xds"
)

// patterns maps each regular expression in the API's constraints to the fault of a text that does not match, and to
// the remedy.
var patterns = map[string][2]string{
	"^[^\x00\n\r]*$":                  {"has a line break or a null character", "write it on one line"},
	"^:?[0-9a-zA-Z!#$%&'*+-.^_|~`]+$": {"is not a valid header name", "write letters, digits and !#$%&'*+-.^_|~`, with an optional colon in front"},
	`^$|^.*\.mmdb$`:                   {"is not a .mmdb file", "write the path of a MaxMind database that ends with .mmdb"},
	"^[^?#]+[^?#/]$":                  {"ends with a slash, or contains ? or #", "write it as /api; for the root use prefix: /"},
	"^[^\x00-\b\n-\x1f\x7f]*$":        {"has a control character", "write it on one line, without control characters"},
	`^[^\x00-\x1f\x7f]*$`:             {"has a control character", "write it on one line, without control characters"},
	`^[^\s,]+$`:                       {"has a space or a comma", "write one word"},
	`^[a-z0-9_\-]*$`:                  {"contains other characters than a-z, 0-9, _ and -", ""},
	"^[^/]*$":                         {"contains a slash", "remove the slash"},
	`^$|^[^\x00-\x1f\x7f ",;<>\\]+$`:  {"contains a character that is not allowed in a cookie", ""},
	`^$|^/[^\x00-\x1f\x7f ",;<>\\]*$`: {"is not a valid cookie path", "write a path that begins with a slash"},
}

var (
	reasonPattern = regexp.MustCompile(`^does not match regex pattern (".*")$`)
	reasonLeast   = regexp.MustCompile(`^must contain at least (\d+) (?:item|pair)\(s\)$`)
	reasonMost    = regexp.MustCompile(`^must contain no more than (\d+) item\(s\)$`)
	reasonShort   = regexp.MustCompile(`^length must be (?:at least|between) (\d+) `)
	reasonList    = regexp.MustCompile(`^must (not )?be in list \[(.*)\]$`)
)

// words returns the message and the help for a value that breaks a constraint. reason is the text of the generated
// code. element means that the value is an element of a list or an entry of a map.
func words(fd protoreflect.FieldDescriptor, v protoreflect.Value, element bool, reason string) (message, help string) {
	name := string(fd.Name())
	reason = strings.TrimPrefix(reason, "value ")
	subject := shown(fd, v, element)
	if m := reasonPattern.FindStringSubmatch(reason); m != nil {
		if pattern, err := strconv.Unquote(m[1]); err == nil && patterns[pattern][0] != "" {
			return subject + " " + patterns[pattern][0], patterns[pattern][1]
		}
		return subject + " " + reason, ""
	}
	if m := reasonLeast.FindStringSubmatch(reason); m != nil {
		if n := size(fd, v); n > 0 {
			return fmt.Sprintf("%s needs at least %s entries, and has %d", name, m[1], n), "add another"
		}
		return name + " is empty", "list at least " + m[1]
	}
	if m := reasonMost.FindStringSubmatch(reason); m != nil {
		return fmt.Sprintf("%s has %d entries, the limit is %s", name, size(fd, v), m[1]), ""
	}
	if m := reasonShort.FindStringSubmatch(reason); m != nil && m[1] == "1" && isBlank(v) {
		return name + " is empty", "write a value"
	}
	if fd.IsMap() && reasonShort.MatchString(reason) {
		return "a key of " + name + " is empty", "write a value"
	}
	if m := reasonList.FindStringSubmatch(reason); m != nil {
		if m[1] != "" {
			return subject + " is not allowed here", "write another value"
		}
		return subject + " is not an allowed value", "write one of " + strings.Join(strings.Fields(m[2]), ", ")
	}
	switch reason {
	case "is required":
		if fd.Message() != nil && fd.Message().FullName() == "google.protobuf.Duration" {
			return name + " is required", "add it, such as " + name + ": 1s"
		}
		return name + " is required", "add it"
	case "must be one of the defined enum values":
		if n, ok := v.Interface().(protoreflect.EnumNumber); ok {
			return fmt.Sprintf("%s has no value %d", name, n), "write one of " + enumNames(fd.Enum())
		}
	}
	return name + " " + reason + butIs(fd, v), ""
}

// shown returns the field's name and, if the value is a text that can't be a secret, also the value.
func shown(fd protoreflect.FieldDescriptor, v protoreflect.Value, element bool) string {
	name := string(fd.Name())
	text, ok := v.Interface().(string)
	switch {
	case !ok || fd.Parent().FullName() == "envoy.config.core.v3.HeaderValue" && name != "key" ||
		strings.HasPrefix(name, "inline_") || xds.SensitiveFieldName(name):
		return name
	case element:
		return strconv.Quote(text) + " in " + name
	default:
		return name + " " + strconv.Quote(text)
	}
}

func isBlank(v protoreflect.Value) bool {
	switch x := v.Interface().(type) {
	case string:
		return x == ""
	case []byte:
		return len(x) == 0
	}
	return false
}

func size(fd protoreflect.FieldDescriptor, v protoreflect.Value) int {
	switch {
	case fd.IsList():
		return v.List().Len()
	case fd.IsMap():
		return v.Map().Len()
	}
	return 0
}

func enumNames(ed protoreflect.EnumDescriptor) string {
	var names []string
	for i := range ed.Values().Len() {
		names = append(names, string(ed.Values().Get(i).Name()))
	}
	return strings.Join(names, ", ")
}

// butIs returns ", is " and the value; "" if the value is long or may be a secret.
func butIs(fd protoreflect.FieldDescriptor, v protoreflect.Value) string {
	if d, ok := messageOf(v).(*durationpb.Duration); ok && d != nil {
		return ", is " + DurationText(d)
	}
	switch x := v.Interface().(type) {
	case int32, int64, uint32, uint64, float32, float64:
		return fmt.Sprintf(", is %v", x)
	case string:
		if strings.HasPrefix(shown(fd, v, false), string(fd.Name())+` "`) && len(x) <= 60 {
			return ", is " + strconv.Quote(x)
		}
	case protoreflect.Message:
		if wrapped := x.Descriptor().Fields().ByName("value"); x.IsValid() && wrapped != nil &&
			x.Descriptor().ParentFile().Path() == "google/protobuf/wrappers.proto" {
			return butIs(wrapped, x.Get(wrapped))
		}
	}
	return ""
}
