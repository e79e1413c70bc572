package xds

import (
	"strings"

	udpatypev1 "github.com/cncf/xds/go/udpa/type/v1"
	xdstypev3 "github.com/cncf/xds/go/xds/type/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
)

// PayloadType returns the type that an Any holds, or that the TypedStruct in it stands for.
func PayloadType(a *anypb.Any) protoreflect.FullName {
	name := NameInURL(a.GetTypeUrl())
	if !IsTypedStruct(name) {
		return name // most Anys return here, and need not be unpacked
	}
	switch m, _ := a.UnmarshalNew(); m := m.(type) {
	case *xdstypev3.TypedStruct:
		return NameInURL(m.GetTypeUrl())
	case *udpatypev1.TypedStruct:
		return NameInURL(m.GetTypeUrl())
	}
	return name
}

// IsTypedStruct reports whether a message is a TypedStruct: a type URL and a Struct that stands for a message of
// that type.
func IsTypedStruct(name protoreflect.FullName) bool {
	return name == "xds.type.v3.TypedStruct" || name == "udpa.type.v1.TypedStruct"
}

// NameInURL returns the message name in a type URL.
func NameInURL(url string) protoreflect.FullName {
	return protoreflect.FullName(url[strings.LastIndexByte(url, '/')+1:])
}
