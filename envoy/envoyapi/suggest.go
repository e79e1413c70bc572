package envoyapi

import (
	_ "embed" // contrib.txt
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"xdspub/diag"
	"xdspub/xds"
)

var versionTwo = regexp.MustCompile(`(^|/)envoy\.(api\.v2\b|.*\.v2(alpha\d*)?\b)`)

// SuggestType returns help for a type URL that Envoy does not know, and the correction to the URL that the user
// probably means. The correction has no Right if no type is similar.
func (v *Version) SuggestType(url string) (help string, c diag.Correction) {
	help, right, sure := v.suggestType(url)
	return help, diag.Correction{Wrong: url, Right: right, Sure: sure}
}

// suggestType is SuggestType. sure means that the URL can only be a misspelling of meant.
func (v *Version) suggestType(url string) (help, meant string, sure bool) {
	name := protoreflect.FullName(url[strings.LastIndexByte(url, '/')+1:])
	successor, isOld := Successor(name)
	_, err := protoregistry.GlobalTypes.FindMessageByName(name)
	since, lacks := v.Lacks(name)
	switch near := v.held().nearest(string(name)); {
	case err == nil && lacks && !v.tables().absent[name]:
		return fmt.Sprintf("it came with Envoy %s, after %s", since, v.Before(since)), "", false
	case err == nil && !v.Holds(name):
		return "the Envoy " + v.Name + " binary leaves this type out", "", false
	case err == nil && strings.LastIndexByte(url, '/') < 1:
		return fmt.Sprintf("write it with a host, as Envoy wants it: %s%s", xds.URLPrefix, name), xds.URLPrefix + string(name), true
	case isOld && v.Holds(successor):
		return fmt.Sprintf("this is the v2 API, which Envoy has dropped: write %s%s", xds.URLPrefix, successor), xds.URLPrefix + string(successor), false
	case isContrib(name):
		return "only contrib builds of Envoy have this type", "", false
	case versionTwo.MatchString(url):
		return "this is the v2 API, which Envoy has dropped: use the v3 message of the same purpose", "", false
	case near != "":
		return fmt.Sprintf("did you mean %s%s?", xds.URLPrefix, near), xds.URLPrefix + near, v.held().words.Misspelt(string(name), near, xds.IsWord)
	default:
		return "check the spelling; your own types need --descriptor-set", "", false
	}
}

//go:embed contrib.txt
var contribText string

// contribPackages has the prefixes of the types of contrib extensions.
var contribPackages = sync.OnceValue(func() (packages []string) {
	for line := range strings.Lines(contribText) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			packages = append(packages, "envoy.extensions."+line+".")
		}
	}
	return packages
})

// isContrib reports whether a type belongs to a contrib extension.
func isContrib(name protoreflect.FullName) bool {
	return slices.ContainsFunc(contribPackages(), func(p string) bool { return strings.HasPrefix(string(name), p) })
}

// typeNames has the names of the types that Envoy holds, and of the user's own types. It has no messages nested in
// messages of the API.
type typeNames struct {
	words *diag.Candidates
	// short maps the last part of a name, such as Router, to the full names.
	short map[string][]string
}

func namesOf(holds func(protoreflect.FullName) bool, own []protoreflect.FullName) typeNames {
	var list []string
	short := make(map[string][]string)
	for _, name := range own {
		list = append(list, string(name))
		short[string(name.Name())] = append(short[string(name.Name())], string(name))
	}
	protoregistry.GlobalTypes.RangeMessages(func(mt protoreflect.MessageType) bool {
		md := mt.Descriptor()
		if _, nested := md.Parent().(protoreflect.MessageDescriptor); !nested && holds(md.FullName()) {
			list = append(list, string(md.FullName()))
			short[string(md.Name())] = append(short[string(md.Name())], string(md.FullName()))
		}
		return true
	})
	slices.Sort(list)
	return typeNames{diag.NewCandidates(list), short}
}

// nearest returns the type whose name differs by a typing error, or else the only type with the same last part of
// its name, since packages are easily mistaken; "" for none.
func (t typeNames) nearest(name string) string {
	if near := t.words.Nearest(name); near != "" {
		return near
	}
	if same := t.short[name[strings.LastIndexByte(name, '.')+1:]]; len(same) == 1 {
		return same[0]
	}
	return ""
}
