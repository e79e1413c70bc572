// Package envoyapi knows what the binaries of Envoy hold, a Version each: types of messages,
// extensions and the fields that take them, cluster types, filters that end a chain, the words
// and functions of its languages. Envoy says all of that itself, and tests ask it again. A
// Version is handed to those who judge by it.
//
// The latest version is a folder of texts here; an older one is a line of older-versions.txt, and
// has of these texts what was there then, by since.txt. New makes a version of any folder.
package envoyapi

import (
	"cmp"
	"embed"
	"io/fs"
	"strings"
	"sync"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"xdspub/xds"
)

// Version describes one version of Envoy, without contrib.
type Version struct {
	// Name is the version, as in 1.40.0.
	Name string

	// release is that of the name.
	release release
	// folder has the texts.
	folder fs.FS
	// fleet has the versions that a Fleet is made of, the oldest first.
	fleet []*Version

	// registry has the user's own types, too; nil where there are none.
	registry *xds.Registry

	tables func() *tables
	held   func() typeNames
	newer  func() map[protoreflect.FullName]bool
}

// Versions are all that are known, the newest first.
var Versions = append([]*Version{linked("1.40.0", "1.40.0")}, older()...)

// Latest is the version that the Go packages of the API belong to.
var Latest = Versions[0]

//go:embed v*/*.txt
var folders embed.FS

// olderVersions are those that know a part of what the latest does: since.txt says which.
//
//go:embed older-versions.txt
var olderVersions string

func older() (list []*Version) {
	for _, name := range strings.Fields(olderVersions) {
		list = append(list, linked(name, "1.40.0"))
	}
	return list
}

// linked is a version by the texts of another.
func linked(name, texts string) *Version {
	folder, err := fs.Sub(folders, "v"+texts)
	if err != nil {
		panic(err) // the name is one of ours
	}
	return New(name, folder)
}

// New returns the version that a folder describes, by the same files as v1.40.0 has, less what
// since.txt says is newer, and with what it says is gone since. The files are read when something is first asked; one that is missing
// or malformed is a panic then, as folders are part of a program.
func New(name string, folder fs.FS) *Version {
	v := &Version{Name: name, release: releaseOf(name), folder: folder}
	v.tables = sync.OnceValue(func() *tables { return must(read(folder, v.release, v.release)) })
	v.held = sync.OnceValue(func() typeNames { return namesOf(v.Holds, nil) })
	v.newer = sync.OnceValue(func() map[protoreflect.FullName]bool { return messagesWithNewer(v.release) })
	return v
}

// With returns the version of the Envoys that take the user's own types, too; nil, of the version and
// of the types, means the latest, and none. Where these are taken, nobody knows: they are no finding
// wherever an extension or an Any may stand.
func (v *Version) With(own *xds.Registry) *Version {
	if own == nil {
		return v
	}
	v = cmp.Or(v, Latest)
	with := *v
	with.registry = own
	with.held = sync.OnceValue(func() typeNames { return namesOf(v.Holds, own.Own()) })
	return &with
}

// Registry returns the types that an Any may hold for this Envoy.
func (v *Version) Registry() *xds.Registry { return v.registry }

// Takes reports whether a type is known where any will do: the binary holds it, or it is one of the
// user's own.
func (v *Version) Takes(name protoreflect.FullName) bool {
	return v.Holds(name) || v.registry.Owns(name)
}

// Holds reports whether the binary holds a message type of the API that is linked. Where it does not, "could not find
// @type" loses the whole file, however deep the type stands.
func (v *Version) Holds(name protoreflect.FullName) bool {
	if _, lacks := v.Lacks(name); lacks || v.tables().absent[name] {
		return false
	}
	_, err := protoregistry.GlobalTypes.FindMessageByName(name)
	return err == nil
}
