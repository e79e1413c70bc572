// Package envoyapi knows what the binaries of Envoy hold, a Version each: types of messages,
// extensions and the fields that take them, cluster types, filters that end a chain, the words
// and functions of its languages. Envoy says all of that itself, and tests ask it again. A
// Version is handed to those who judge by it.
//
// A version is a folder of texts here and a row in Versions. New makes one of any folder.
package envoyapi

import (
	"embed"
	"io/fs"
	"sync"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// Version describes one version of Envoy, without contrib.
type Version struct {
	// Name is the version, as in 1.40.0.
	Name string

	tables func() *tables
	held   func() typeNames
}

// Versions are all that are known, the newest first.
var Versions = []*Version{
	linked("1.40.0"),
}

// Latest is the version that the Go packages of the API belong to.
var Latest = Versions[0]

//go:embed v*/*.txt
var folders embed.FS

func linked(name string) *Version {
	folder, err := fs.Sub(folders, "v"+name)
	if err != nil {
		panic(err) // the name is one of ours
	}
	return New(name, folder)
}

// New returns the version that a folder describes, by the same files as v1.40.0 has. They are
// read when something is first asked; a file that is missing or malformed is a panic then, as
// folders are part of a program.
func New(name string, folder fs.FS) *Version {
	v := &Version{Name: name}
	v.tables = sync.OnceValue(func() *tables { return must(read(folder)) })
	v.held = sync.OnceValue(func() typeNames { return namesOf(v.Holds) })
	return v
}

// Holds reports whether the binary holds a message type of the API that is linked. Where it does not, "could not find
// @type" loses the whole file, however deep the type stands.
func (v *Version) Holds(name protoreflect.FullName) bool {
	if v.tables().absent[name] {
		return false
	}
	_, err := protoregistry.GlobalTypes.FindMessageByName(name)
	return err == nil
}
