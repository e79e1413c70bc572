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

// sinceText lists additions and removals of each release after the oldest supported release. Each supported release
// has the fields, types and rows that sinceText does not list.

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

// sinceTable has additions and changes, with the release that brought each.
type sinceTable struct {
	// api has fields, types, and values of enums. The name of a value begins with the name of its enum.
	api        map[protoreflect.FullName]release
	extensions map[extensionKey]release // by category and name
	// routes has the types that a filter reads for routes, but did not before.
	routes map[protoreflect.FullName]release
	// optional has fields that were required before the release.
	optional map[protoreflect.FullName]release
	// constraints has fields that lacked their present constraint before the release.
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

// Lacks reports whether a field or a type of the API is newer than the version, and returns the release that
// brought it.
func (v *Version) Lacks(name protoreflect.FullName) (since string, lacks bool) {
	return v.lacks(newIn().api[name])
}

// LacksValue is Lacks for a value of an enum.
func (v *Version) LacksValue(ev protoreflect.EnumValueDescriptor) (since string, lacks bool) {
	return v.Lacks(ev.Parent().FullName().Append(ev.Name()))
}

// LacksExtension is Lacks for the extension of a category that a configuration is for. It also returns the name of
// the extension.
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

// HasNewer reports whether a type of messages has a field that is newer than the version, or a field of an enum
// with a newer value.
func (v *Version) HasNewer(message protoreflect.FullName) bool { return v.newer()[message] }

// LacksFields reports whether any type of messages HasNewer.
func (v *Version) LacksFields() bool { return len(v.newer()) > 0 }

// messagesWithNewer returns the types of messages for which HasNewer is true in a release.
func messagesWithNewer(than release) map[protoreflect.FullName]bool {
	found := make(map[protoreflect.FullName]bool)
	enums := make(map[protoreflect.FullName]bool)
	for name, by := range newIn().api {
		if by > than {
			enums[name.Parent()] = true // or a message, if name is a field; no enum has the name of a message
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

// Before returns a text such as "1.38 and 1.39": the releases of a Fleet that are older than since, or the release
// of another version.
func (v *Version) Before(since string) string {
	var list []string
	for _, member := range v.fleet {
		if member.release < releaseOf(since) {
			list = append(list, member.release.String())
		}
	}
	return cmp.Or(strings.Join(list, " and "), v.release.String())
}

var versionText = regexp.MustCompile(`^(\d+\.\d+)(\.\d+)?$`)

// Named returns the version of a release: 1.40, or with any patch number, such as 1.40.2. Named returns nil for an
// unknown release. 1.4 means 1.40, because YAML reads both as the same number.
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

// Releases returns the releases that Named takes, such as 1.40, the oldest first.
func Releases() (names []string) {
	for _, v := range slices.Backward(Versions) {
		names = append(names, v.release.String())
	}
	return names
}
