package facts

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"

	"xdspub/xds"
)

// Violation is a field that breaks a constraint of the API.
type Violation struct {
	Path xds.Path
	// Field is the field that breaks the constraint; empty for a oneof.
	Field protoreflect.FullName
	// Message names the fault. Help names the remedy if Message does not imply the remedy.
	Message, Help string
	// Elsewhere means that another rule reports the violation.
	Elsewhere bool
}

// fieldError is an error of a generated ValidateAll about one field. Field returns the field's name in Go; for an
// element or an entry, the index or key follows in brackets.
type fieldError interface {
	error
	Field() string
	Reason() string
	Cause() error
}

// Violations returns the violations in an error of m's ValidateAll, including those of messages inside m. at is the
// path of m.
func Violations(err error, m protoreflect.Message, at xds.Path) (list []Violation) {
	switch e := err.(type) {
	case interface{ AllErrors() []error }:
		for _, err := range e.AllErrors() {
			list = append(list, Violations(err, m, at)...)
		}
		return list
	case fieldError:
		name, key, _ := strings.Cut(strings.TrimSuffix(e.Field(), "]"), "[")
		fd := fieldByGoName(m.Descriptor().Fields(), name)
		if fd == nil {
			return []Violation{{Path: at, Message: choice(m.Descriptor(), name), Help: "set exactly one of them"}}
		}
		path, value := element(m, fd, at.Field(string(fd.Name())), key)
		if sub, ok := value.Interface().(protoreflect.Message); ok {
			switch e.Cause().(type) {
			case interface{ AllErrors() []error }, fieldError:
				return Violations(e.Cause(), sub, path)
			}
		}
		d, isDuration := messageOf(value).(*durationpb.Duration)
		message, help := words(fd, value, key != "", e.Reason())
		return []Violation{{Path: path, Field: fd.FullName(), Message: message, Help: help, Elsewhere: isDuration && !InDurationRange(d)}}
	default:
		return []Violation{{Path: at, Message: err.Error()}}
	}
}

// element returns a field's value and path. If key is the index of an element or the key of an entry, it returns
// the value and the path of the element or entry.
func element(m protoreflect.Message, fd protoreflect.FieldDescriptor, path xds.Path, key string) (xds.Path, protoreflect.Value) {
	value := m.Get(fd)
	switch {
	case key == "" && !fd.IsMap():
	case fd.IsList():
		var i int
		if _, err := fmt.Sscan(key, &i); err == nil && i < value.List().Len() {
			return path.Index(i), value.List().Get(i)
		}
	case fd.IsMap() && fd.MapKey().Kind() == protoreflect.StringKind:
		if k := protoreflect.ValueOfString(key).MapKey(); value.Map().Has(k) {
			return path.Key(key), value.Map().Get(k)
		}
	}
	return path, value
}

func messageOf(v protoreflect.Value) any {
	if m, ok := v.Interface().(protoreflect.Message); ok && m.IsValid() {
		return m.Interface()
	}
	return nil
}

// choice returns the message for a oneof without a set field. goName is the oneof's name in Go.
func choice(md protoreflect.MessageDescriptor, goName string) string {
	for i := range md.Oneofs().Len() {
		oneof := md.Oneofs().Get(i)
		if !sameGoName(oneof.Name(), goName) {
			continue
		}
		var names []string
		for j := range oneof.Fields().Len() {
			names = append(names, string(oneof.Fields().Get(j).Name()))
		}
		return "one of " + strings.Join(names, ", ") + " is required"
	}
	return goName + " is required"
}

func fieldByGoName(fields protoreflect.FieldDescriptors, goName string) protoreflect.FieldDescriptor {
	for i := range fields.Len() {
		if sameGoName(fields.Get(i).Name(), goName) {
			return fields.Get(i)
		}
	}
	return nil
}

// sameGoName reports whether a field is called goName in generated Go code, which has capital letters instead of
// underscores.
func sameGoName(name protoreflect.Name, goName string) bool {
	return strings.EqualFold(strings.ReplaceAll(string(name), "_", ""), strings.ReplaceAll(goName, "_", ""))
}
