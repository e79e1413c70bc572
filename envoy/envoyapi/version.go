// Package envoyapi describes the binaries of Envoy, a Version each: types of messages, extensions and their
// fields, cluster types, filters that end a chain, the words and functions of Envoy's languages. Every fact
// comes from Envoy itself, and tests ask Envoy again. Code that judges by a Version takes the Version as an
// argument.
//
// The latest version is a folder of texts. An older version is a line of older-versions.txt; since.txt tells
// which parts of the texts it has. New makes a version of any folder.
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

	// registry has the user's own types; nil without such types.
	registry *xds.Registry

	tables func() *tables
	held   func() typeNames
	newer  func() map[protoreflect.FullName]bool
}

// Versions lists all known versions, the newest first.
var Versions = append([]*Version{linked("1.40.0", "1.40.0")}, older()...)

// Latest is the version that the Go packages of the API belong to.
var Latest = Versions[0]

//go:embed v*/*.txt
var folders embed.FS

// olderVersions have a part of the texts of the latest version, by since.txt.
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

// New returns the version that a folder describes, with the files of v1.40.0's folder. since.txt removes newer
// rows, and adds rows that left since. New reads the files on the first use. A missing or malformed file is a
// panic then, because folders are part of a program.
func New(name string, folder fs.FS) *Version {
	v := &Version{Name: name, release: releaseOf(name), folder: folder}
	v.tables = sync.OnceValue(func() *tables { return must(read(folder, v.release, v.release)) })
	v.held = sync.OnceValue(func() typeNames { return namesOf(v.Holds, nil) })
	v.newer = sync.OnceValue(func() map[protoreflect.FullName]bool { return messagesWithNewer(v.release) })
	return v
}

// With returns a version that also accepts the user's own types. A nil version means the latest, nil types
// mean none. The places for own types are unknown, so own types cause no finding at any extension point and in
// any Any.
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

// Takes reports whether a type is known at a place for any type: the binary holds the type, or the user owns
// it.
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
