package admit

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"xdspub/diag"
)

// NodeField is the name of a field of a node, such as cluster or metadata.env.
type NodeField string

// nodeField reads a field of a node as text, and copies the field. The text of a missing field is empty.
type nodeField struct {
	text func(*corev3.Node) string
	copy func(to, from *corev3.Node)
}

// nodeFields are the fields besides metadata.NAME.
var nodeFields = map[NodeField]nodeField{
	"id":      {(*corev3.Node).GetId, func(to, from *corev3.Node) { to.Id = from.GetId() }},
	"cluster": {(*corev3.Node).GetCluster, func(to, from *corev3.Node) { to.Cluster = from.GetCluster() }},
	"locality.region": {
		func(n *corev3.Node) string { return n.GetLocality().GetRegion() },
		func(to, from *corev3.Node) { to.Locality.Region = from.GetLocality().GetRegion() },
	},
	"locality.zone": {
		func(n *corev3.Node) string { return n.GetLocality().GetZone() },
		func(to, from *corev3.Node) { to.Locality.Zone = from.GetLocality().GetZone() },
	},
	"locality.sub_zone": {
		func(n *corev3.Node) string { return n.GetLocality().GetSubZone() },
		func(to, from *corev3.Node) { to.Locality.SubZone = from.GetLocality().GetSubZone() },
	},
	"user_agent_name":    {(*corev3.Node).GetUserAgentName, func(to, from *corev3.Node) { to.UserAgentName = from.GetUserAgentName() }},
	"user_agent_version": {userAgentVersion, copyUserAgentVersion},
}

const ofMetadata = "metadata."

// ParseNodeField parses the name of a field.
func ParseNodeField(text string) (NodeField, error) {
	f := NodeField(text)
	if _, ok := nodeFields[f]; !ok && (!strings.HasPrefix(text, ofMetadata) || text == ofMetadata) {
		return "", errors.New("the fields are id, cluster, locality.region, locality.zone, locality.sub_zone, metadata.NAME, " +
			"user_agent_name and user_agent_version")
	}
	return f, nil
}

// Text returns the value of the field as text; ok is false if the node lacks the field. A nil node lacks every field.
func (f NodeField) Text(n *corev3.Node) (is string, ok bool) {
	if of, ok := nodeFields[f]; ok {
		is = of.text(n)
		return is, is != ""
	}
	return scalar(at(n.GetMetadata(), f.path(n.GetMetadata())))
}

// NodeWith returns a copy of a node with the given fields of a client's node. A field that the client's node lacks is
// missing in the copy, too.
func NodeWith(node, client *corev3.Node, fields []NodeField) *corev3.Node {
	n := proto.CloneOf(node)
	if n.Locality == nil {
		n.Locality = &corev3.Locality{}
	}
	if n.Metadata == nil {
		n.Metadata = &structpb.Struct{}
	}
	for _, f := range fields {
		if of, ok := nodeFields[f]; ok {
			of.copy(n, client)
		} else {
			f.copyMetadata(n.Metadata, client.GetMetadata())
		}
	}
	if proto.Size(n.Locality) == 0 {
		n.Locality = nil
	}
	if len(n.Metadata.GetFields()) == 0 {
		n.Metadata = nil
	}
	return n
}

// userAgentVersion returns the version of the client program, such as 1.40.0.
func userAgentVersion(n *corev3.Node) string {
	if v := n.GetUserAgentBuildVersion().GetVersion(); v != nil {
		return fmt.Sprintf("%d.%d.%d", v.GetMajorNumber(), v.GetMinorNumber(), v.GetPatch())
	}
	return n.GetUserAgentVersion()
}

// copyUserAgentVersion copies the version without the metadata of the build, in which equal versions may differ.
func copyUserAgentVersion(to, from *corev3.Node) {
	switch v := from.GetUserAgentBuildVersion().GetVersion(); {
	case v != nil:
		is := &corev3.BuildVersion{Version: proto.CloneOf(v)}
		to.UserAgentVersionType = &corev3.Node_UserAgentBuildVersion{UserAgentBuildVersion: is}
	case from.GetUserAgentVersion() != "":
		to.UserAgentVersionType = &corev3.Node_UserAgentVersion{UserAgentVersion: from.GetUserAgentVersion()}
	default:
		to.UserAgentVersionType = nil
	}
}

// path returns the names that lead to the field in the metadata of a node; nil if the metadata has no scalar there. A
// dot in the name of the field separates the names of nested Structs, or is a part of a name in the metadata.
func (f NodeField) path(s *structpb.Struct) []string {
	return pathIn(s, strings.TrimPrefix(string(f), ofMetadata))
}

// pathIn is path for a name below a Struct.
func pathIn(s *structpb.Struct, name string) []string {
	if v := s.GetFields()[name]; v != nil {
		if _, ok := scalar(v); ok {
			return []string{name}
		}
		return nil
	}
	for i, c := range name {
		if c != '.' {
			continue
		}
		if rest := pathIn(s.GetFields()[name[:i]].GetStructValue(), name[i+1:]); rest != nil {
			return append([]string{name[:i]}, rest...)
		}
	}
	return nil
}

// at returns the value at a path of pathIn; nil for a nil path.
func at(s *structpb.Struct, path []string) *structpb.Value {
	var v *structpb.Value
	for _, name := range path {
		v = s.GetFields()[name]
		s = v.GetStructValue()
	}
	return v
}

// copyMetadata copies the field from the metadata of a node to the metadata of another node. If from lacks the field,
// copyMetadata removes the field of to.
func (f NodeField) copyMetadata(to, from *structpb.Struct) {
	for path := f.path(to); path != nil; path = f.path(to) {
		remove(to, path)
	}
	path := f.path(from)
	if path == nil {
		return
	}
	put(to, path, proto.CloneOf(at(from, path)))
}

// put sets the value at a path.
func put(s *structpb.Struct, path []string, v *structpb.Value) {
	if s.Fields == nil {
		s.Fields = make(map[string]*structpb.Value)
	}
	if len(path) == 1 {
		s.Fields[path[0]] = v
		return
	}
	if s.Fields[path[0]].GetStructValue() == nil {
		s.Fields[path[0]] = structpb.NewStructValue(&structpb.Struct{})
	}
	put(s.Fields[path[0]].GetStructValue(), path[1:], v)
}

// remove removes the value at a path, and each Struct of the path that is then empty.
func remove(s *structpb.Struct, path []string) {
	if len(path) > 1 {
		below := s.GetFields()[path[0]].GetStructValue()
		if remove(below, path[1:]); len(below.GetFields()) > 0 {
			return
		}
	}
	delete(s.Fields, path[0])
}

// Describe returns the values of fields of a node as text, such as `cluster=web metadata.env="a b"`. A value is cut to
// diag.MaxWord bytes, and quoted unless it is a plain word, so that a value can't pass for a second field. A field that
// the node lacks has no text after the equals sign.
func Describe(n *corev3.Node, fields []NodeField) string {
	var parts []string
	for _, f := range fields {
		is, ok := f.Text(n)
		if is = diag.Cut(is, diag.MaxWord); ok && !plainWord.MatchString(is) {
			is = strconv.Quote(is)
		}
		parts = append(parts, string(f)+"="+is)
	}
	return strings.Join(parts, " ")
}

// plainWord matches a value that needs no quotes.
var plainWord = regexp.MustCompile(`^[\w./:@+-]+$`)
