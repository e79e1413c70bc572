package envoyapi

import (
	"cmp"
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// sinceText lists additions and removals of each release after the oldest supported release. Every supported
// release has what sinceText does not list.

//go:embed since.txt
var sinceText string

// release is a release of Envoy without its patch number: 1040 is 1.40.
type release int

// releaseOf returns the release of a version such as 1.40 or 1.40.0; 0 for any other text.
func releaseOf(version string) release {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, errA := strconv.ParseUint(major, 10, 8)
	b, errB := strconv.ParseUint(minor, 10, 8)
	if errA != nil || errB != nil {
		return 0
	}
	return release(a*1000 + b)
}

func (r release) String() string { return fmt.Sprintf("%d.%d", r/1000, r%1000) }

// sinceTable has the releases that brought something.
type sinceTable struct {
	// api has fields, types, and the values of enums below the enum's own name.
	api        map[protoreflect.FullName]release
	extensions map[extensionKey]release
	// routes has the types that a filter reads for routes, but did not before.
	routes map[protoreflect.FullName]release
	// optional has fields that Envoy once refused when empty.
	optional map[protoreflect.FullName]release
	// constraints has fields that once lacked their present constraint.
	constraints map[protoreflect.FullName]release
	// rows has the changed rows of each file of a release's folder.
	rows map[string]rowChanges
}

// rowChanges are the rows of a file that some releases lack.
type rowChanges struct {
	// came maps the text of a row to the release that added the row.
	came map[string]release
	// left are the rows that newer releases lack.
	left []leftRow
}

// leftRow is a row that a release removed.
type leftRow struct {
	row
	by release
	// replaced means that the release put another row in its place.
	replaced bool
}

var newIn = sync.OnceValue(func() sinceTable {
	names := func() map[protoreflect.FullName]release { return make(map[protoreflect.FullName]release) }
	t := sinceTable{names(), make(map[extensionKey]release), names(), names(), names(), make(map[string]rowChanges)}
	for line := range strings.Lines(sinceText) {
		words := strings.Fields(line)
		if len(words) < 3 || words[0] == "#" {
			continue
		}
		by, name := releaseOf(words[0]), protoreflect.FullName(words[2])
		switch words[1] {
		case "extension":
			t.extensions[extensionKey{words[2], words[3]}] = by
		case "route":
			t.routes[name] = by
		case "optional":
			t.optional[name] = by
		case "constraint":
			t.constraints[name] = by
		case "row", "was", "gone":
			t.addRow(by, words[1], words[2], words[3:])
		default:
			t.api[name] = by
		}
	}
	return t
})

func (t *sinceTable) addRow(by release, kind, file string, words row) {
	changes := t.rows[file]
	if kind != "row" {
		changes.left = append(changes.left, leftRow{words, by, kind == "was"})
	} else {
		if changes.came == nil {
			changes.came = make(map[string]release)
		}
		changes.came[words.String()] = by
	}
	t.rows[file] = changes
}

// Lacks reports whether a field or a type of the API is newer than the version, and the release
// that brought it.
func (v *Version) Lacks(name protoreflect.FullName) (since string, lacks bool) {
	return v.lacks(newIn().api[name])
}

// LacksValue is Lacks for a value of an enum.
func (v *Version) LacksValue(ev protoreflect.EnumValueDescriptor) (since string, lacks bool) {
	return v.Lacks(ev.Parent().FullName().Append(ev.Name()))
}

// LacksExtension is Lacks for the extension that a configuration configures, and names the extension.
func (v *Version) LacksExtension(category string, config protoreflect.FullName) (name, since string, lacks bool) {
	e, _ := Latest.ExtensionOf(category, config)
	since, lacks = v.lacks(newIn().extensions[extensionKey{category, e.Name}])
	return e.Name, since, lacks
}

func (v *Version) lacks(by release) (since string, lacks bool) {
	if by <= v.release {
		return "", false
	}
	return by.String(), true
}

// HasNewer reports whether messages of a type can hold what is newer than the version: a field, or
// a value of an enum.
func (v *Version) HasNewer(message protoreflect.FullName) bool { return v.newer()[message] }

// LacksFields reports whether the API has fields newer than the release.
func (v *Version) LacksFields() bool { return len(v.newer()) > 0 }

// messagesWithNewer returns the types of messages that can hold fields, or values of enums, newer than a
// release.
func messagesWithNewer(than release) map[protoreflect.FullName]bool {
	found := make(map[protoreflect.FullName]bool)
	enums := make(map[protoreflect.FullName]bool)
	for name, by := range newIn().api {
		if by > than {
			enums[name.Parent()] = true // a field's parent is a message, which does no harm
		}
	}
	if len(enums) == 0 {
		return found
	}
	protoregistry.GlobalTypes.RangeMessages(func(mt protoreflect.MessageType) bool {
		md := mt.Descriptor()
		for i := range md.Fields().Len() {
			fd := md.Fields().Get(i)
			if newIn().api[fd.FullName()] > than || fd.Enum() != nil && enums[fd.Enum().FullName()] {
				found[md.FullName()] = true
			}
		}
		return true
	})
	return found
}

// Fleet returns a version for Envoys of several releases: it has what all of them have, and the name of the
// oldest. If a row differs between releases, Fleet has the row of the oldest. of must not be empty.
func Fleet(of []*Version) *Version {
	fleet := slices.Clone(of)
	slices.SortFunc(fleet, func(a, b *Version) int { return int(a.release - b.release) })
	fleet = slices.Compact(fleet)
	if len(fleet) == 1 {
		return fleet[0]
	}
	all := *fleet[0]
	all.fleet = fleet
	all.tables = sync.OnceValue(func() *tables { return must(read(all.folder, all.release, all.newest())) })
	return &all
}

// Before returns the releases of the version that are older than one, as text.
func (v *Version) Before(since string) string {
	var list []string
	for _, one := range v.fleet {
		if one.release < releaseOf(since) {
			list = append(list, one.release.String())
		}
	}
	return cmp.Or(strings.Join(list, " and "), v.release.String())
}

var versionText = regexp.MustCompile(`^(\d+\.\d+)(\.\d+)?$`)

// Named returns the version of a release, given as 1.40 or with a patch, as 1.40.0; nil for an unknown
// release. 1.4 is 1.40, because YAML reads both as the same number.
func Named(name string) *Version {
	m := versionText.FindStringSubmatch(name)
	if m == nil {
		return nil
	}
	for _, v := range Versions {
		if is := v.release.String(); is == m[1] || strings.TrimRight(is, "0") == name {
			return v
		}
	}
	return nil
}

// Releases returns the names that Named takes, without patches, the oldest first.
func Releases() (names []string) {
	for _, v := range slices.Backward(Versions) {
		names = append(names, v.release.String())
	}
	return names
}
