// Package envoyapi describes each binary of Envoy by a Version: types of messages, extensions and their fields,
// cluster types, filters that end a chain, the words and functions of Envoy's languages. Every fact comes from
// Envoy itself, and tests ask Envoy again. Code that judges by a Version takes the Version as an argument.
//
// The latest version is a folder of texts. An older version is a line of older-versions.txt; since.txt says which
// rows of the texts it has. New makes a version of any folder.
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

	// release is the release of Name.
	release release
	// folder has the texts.
	folder fs.FS
	// fleet has the versions of a Fleet, the oldest first; nil for other versions.
	fleet []*Version

	// registry has the user's own types; nil without such types.
	registry *xds.Registry

	tables func() *tables
	held   func() typeNames                      // the types that the binary holds
	newer  func() map[protoreflect.FullName]bool // the result of messagesWithNewer
}

// Versions lists all known versions, the newest first.
var Versions = append([]*Version{linked("1.40.0", "1.40.0")}, older()...)

// Latest is the newest version. The Go packages of the API are of this version.
var Latest = Versions[0]

//go:embed v*/*.txt
var folders embed.FS

// olderVersions are the names of the older versions, the newest first.
//
//go:embed older-versions.txt
var olderVersions string

func older() (list []*Version) {
	for _, name := range strings.Fields(olderVersions) {
		list = append(list, linked(name, "1.40.0"))
	}
	return list
}

// linked returns the version of a name, made of the folder of another version.
func linked(name, texts string) *Version {
	folder, err := fs.Sub(folders, "v"+texts)
	if err != nil {
		panic(err) // impossible: the binary embeds the folder
	}
	return New(name, folder)
}

// New returns the version that a folder describes. The folder has the same files as the folder of v1.40.0. For an
// older name, since.txt removes the rows that came later, and adds the rows that newer releases lack. The first use
// of the version reads the files, and panics if a file is missing or malformed, because folders are part of a
// program.
func New(name string, folder fs.FS) *Version {
	v := &Version{Name: name, release: releaseOf(name), folder: folder}
	v.tables = sync.OnceValue(func() *tables { return must(read(folder, v.release, v.release)) })
	v.held = sync.OnceValue(func() typeNames { return namesOf(v.Holds, nil) })
	v.newer = sync.OnceValue(func() map[protoreflect.FullName]bool { return messagesWithNewer(v.release) })
	return v
}

// With returns a version that also accepts the user's own types. If own is nil, With returns v. Otherwise, a nil v
// means Latest. Envoy may accept an own type anywhere, so that own types cause no finding at an extension point or
// in another Any.
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

// Registry returns the types of With, and the API's types; nil if With gave none.
func (v *Version) Registry() *xds.Registry { return v.registry }

// Takes reports whether Envoy knows a type: the binary holds the type, or the type is one of the user's own.
func (v *Version) Takes(name protoreflect.FullName) bool {
	return v.Holds(name) || v.registry.Owns(name)
}

// Holds reports whether the binary holds a message type of the API. If a file names another type, Envoy refuses the
// whole file with "could not find @type", however deep the type stands. xdspub itself must hold the type, too.
func (v *Version) Holds(name protoreflect.FullName) bool {
	if _, lacks := v.Lacks(name); lacks || v.tables().absent[name] {
		return false
	}
	_, err := protoregistry.GlobalTypes.FindMessageByName(name)
	return err == nil
}
