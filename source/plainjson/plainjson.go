// Package plainjson reads plain JSON into messages as protojson does, in a third of the time. Most resources are
// plain. For other JSON, and for JSON with a mistake, the package reports false: protojson then reads the text or
// names the mistake.
//
//	if !plainjson.Unmarshal(text, m, types) {
//		err = protojson.Unmarshal(text, m)
//	}
//
// The package turns the text into the wire format and decodes it by proto.Unmarshal, which needs no reflection. A
// fuzz test compares the package with protojson.
package plainjson

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"math"
	"strconv"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Types finds the types that an Any may hold.
type Types interface {
	FindMessageByURL(url string) (protoreflect.MessageType, error)
}

// Unmarshal reads a text into an empty message. If it reports false, the text is not plain, and the message is empty.
func Unmarshal(text []byte, m proto.Message, types Types) bool {
	r := newReader(text, types)
	defer r.end()
	return r.message(shapeOf(m.ProtoReflect().Descriptor()), 0) && r.into(m)
}

// UnmarshalTyped reads a text whose first member is the @type of a message, and returns that message. If it
// reports false, the text is not plain, or the type is not wanted.
func UnmarshalTyped(text []byte, types Types, wanted func(protoreflect.FullName) bool) (m proto.Message, ok bool) {
	r := newReader(text, types)
	defer r.end()
	_, mt := r.typed()
	if mt == nil || !wanted(mt.Descriptor().FullName()) || !r.members(shapeOf(mt.Descriptor()), false, 0) {
		return nil, false
	}
	m = mt.New().Interface()
	return m, r.into(m)
}

// readers pools readers with their buffers: the wire format takes as much space as the text.
var readers = sync.Pool{New: func() any { return new(reader) }}

// keepWire is the largest buffer, in bytes, that a pooled reader keeps.
const keepWire = 1 << 20

// reader writes the wire format of one text.
type reader struct {
	text  []byte
	pos   int
	types Types
	wire  []byte
	keys  [][]byte // of the open maps
}

func newReader(text []byte, types Types) *reader {
	r := readers.Get().(*reader)
	r.text, r.pos, r.types, r.wire, r.keys = text, 0, types, r.wire[:0], r.keys[:0]
	return r
}

// end drops the references to the caller's text and types.
func (r *reader) end() {
	clear(r.keys[:cap(r.keys)])
	if r.text, r.types = nil, nil; cap(r.wire) > keepWire {
		r.wire = nil
	}
	readers.Put(r)
}

// into decodes the wire format into an empty message after the whole text is read.
func (r *reader) into(m proto.Message) bool {
	if r.peek() != 0 || r.pos < len(r.text) {
		return false
	}
	if (proto.UnmarshalOptions{Merge: true}).Unmarshal(r.wire, m) != nil { // a string is not UTF-8
		proto.Reset(m)
		return false
	}
	return true
}

const (
	// maxDepth bounds how deeply values nest. protojson has a bound of its own, which is higher.
	maxDepth = 32
	// maxKeys bounds the entries of a map: each key is compared with the others.
	maxKeys = 64
)

// peek skips spaces and returns the next character, or 0 at the end of the text.
func (r *reader) peek() byte {
	for ; r.pos < len(r.text); r.pos++ {
		switch c := r.text[r.pos]; c {
		case ' ', '\n', '\r', '\t':
		default:
			return c
		}
	}
	return 0
}

// takes skips spaces and the character c, and reports whether c was next.
func (r *reader) takes(c byte) bool {
	if r.peek() != c {
		return false
	}
	r.pos++
	return true
}

// more reports whether a list or an object has another element. It reads the comma before any but the first.
func (r *reader) more(end byte, first bool) (more, ok bool) {
	switch {
	case r.takes(end):
		return false, true
	case first:
		return true, true
	}
	return true, r.takes(',')
}

// quoted reads a text without escapes.
func (r *reader) quoted() (s []byte, ok bool) {
	if !r.takes('"') {
		return nil, false
	}
	start := r.pos
	for ; r.pos < len(r.text); r.pos++ {
		switch c := r.text[r.pos]; {
		case c == '"':
			r.pos++
			return r.text[start : r.pos-1], true
		case c == '\\', c < ' ':
			return nil, false
		}
	}
	return nil, false
}

// name reads the name of a member and the colon after the name.
func (r *reader) name() (s []byte, ok bool) {
	s, ok = r.quoted()
	return s, ok && r.takes(':')
}

// word skips a word if the word is next.
func (r *reader) word(s string) bool {
	r.peek()
	if !bytes.HasPrefix(r.text[r.pos:], []byte(s)) {
		return false
	}
	r.pos += len(s)
	return true
}

// open begins a value with a length in front of it, and close ends that value.
func (r *reader) open() (at int) {
	r.wire = append(r.wire, 0)
	return len(r.wire)
}

func (r *reader) close(at int) {
	size := len(r.wire) - at
	if size < 0x80 {
		r.wire[at-1] = byte(size)
		return
	}
	more := protowire.SizeVarint(uint64(size)) - 1
	r.wire = append(r.wire, make([]byte, more)...)
	copy(r.wire[at+more:], r.wire[at:])
	binary.PutUvarint(r.wire[at-1:], uint64(size))
}

// message reads the content of a message.
func (r *reader) message(s *shape, depth int) bool {
	if depth > maxDepth {
		return false
	}
	switch s.made().form {
	case object:
		return r.takes('{') && r.members(s, true, depth)
	case wrapper:
		return r.scalar(s.value)
	case duration:
		return r.duration()
	case structure:
		return r.entries(s.value, depth)
	case anyValue:
		return r.anyValue(s, depth)
	case list:
		return r.elements(s.value, depth)
	case payload:
		return r.payload(depth)
	}
	return false
}

// members reads the members of an object after its brace, or after its first member.
func (r *reader) members(s *shape, first bool, depth int) bool {
	var seen [2]uint64
	var oneofs uint64
	for ; ; first = false {
		if more, ok := r.more('}', first); !more || !ok {
			return ok
		}
		name, ok := r.name()
		f := s.fields[string(name)]
		if !ok || f == nil || seen[f.index/64]>>(f.index%64)&1 != 0 {
			return false
		}
		seen[f.index/64] |= 1 << (f.index % 64)
		if r.peek() == 'n' && !f.takesNull {
			if !r.word("null") {
				return false
			}
			continue
		}
		if f.oneof >= 0 {
			if oneofs>>f.oneof&1 != 0 {
				return false
			}
			oneofs |= 1 << f.oneof
		}
		switch {
		case f.isMap:
			ok = r.entries(f, depth)
		case f.isList:
			ok = r.elements(f, depth)
		default:
			ok = r.field(f, depth)
		}
		if !ok {
			return false
		}
	}
}

// field reads one value of a field, and writes its tag.
func (r *reader) field(f *field, depth int) bool {
	if f.of == nil {
		return r.scalar(f)
	}
	r.wire = protowire.AppendVarint(r.wire, f.tag)
	at := r.open()
	if !r.message(f.of, depth+1) {
		return false
	}
	r.close(at)
	return true
}

// elements reads a list.
func (r *reader) elements(f *field, depth int) bool {
	if !r.takes('[') {
		return false
	}
	for first := true; ; first = false {
		if more, ok := r.more(']', first); !more || !ok {
			return ok
		}
		if !r.field(f, depth) {
			return false
		}
	}
}

// entries reads a map with texts for keys.
func (r *reader) entries(f *field, depth int) bool {
	if !r.takes('{') {
		return false
	}
	mine := len(r.keys)
	for first := true; ; first = false {
		if more, ok := r.more('}', first); !more || !ok {
			r.keys = r.keys[:mine]
			return ok
		}
		key, ok := r.name()
		if !ok || len(r.keys)-mine >= maxKeys {
			return false
		}
		for _, other := range r.keys[mine:] {
			if bytes.Equal(key, other) {
				return false
			}
		}
		r.keys = append(r.keys, key)
		r.wire = protowire.AppendVarint(r.wire, f.tag)
		at := r.open()
		r.wire = protowire.AppendTag(r.wire, 1, protowire.BytesType)
		r.wire = protowire.AppendBytes(r.wire, key)
		if !r.field(f.value, depth) {
			return false
		}
		r.close(at)
	}
}

// anyValue reads a google.protobuf.Value.
func (r *reader) anyValue(s *shape, depth int) bool {
	var name string
	switch r.peek() {
	case 'n':
		if !r.word("null") {
			return false
		}
		r.wire = protowire.AppendVarint(protowire.AppendVarint(r.wire, s.fields["null_value"].tag), 0)
		return true
	case 't', 'f':
		name = "bool_value"
	case '"':
		name = "string_value"
	case '{':
		name = "struct_value"
	case '[':
		name = "list_value"
	default:
		name = "number_value"
	}
	return r.field(s.fields[name], depth)
}

// payload reads an Any. Its type must be its first member.
func (r *reader) payload(depth int) bool {
	start := r.pos
	if r.takes('{') && r.takes('}') {
		return true
	}
	r.pos = start
	url, mt := r.typed()
	if mt == nil {
		return false
	}
	s := shapeOf(mt.Descriptor())
	from := len(r.wire)
	if !r.members(s, false, depth+1) {
		return false
	}
	m := mt.New().Interface()
	var err error
	if (proto.UnmarshalOptions{AllowPartial: true}).Unmarshal(r.wire[from:], m) != nil {
		return false
	}
	r.wire = protowire.AppendTag(r.wire[:from], 1, protowire.BytesType)
	r.wire = protowire.AppendString(r.wire, url)
	r.wire = protowire.AppendTag(r.wire, 2, protowire.BytesType)
	at := r.open()
	r.wire, err = proto.MarshalOptions{AllowPartial: true, Deterministic: true}.MarshalAppend(r.wire, m)
	if err != nil {
		return false
	}
	r.close(at)
	return true
}

// typed reads the beginning of an object whose first member is its type. It returns nil for an object of
// another kind, and for a type that is not written as an object.
func (r *reader) typed() (url string, mt protoreflect.MessageType) {
	if !r.takes('{') {
		return "", nil
	}
	name, ok := r.name()
	if !ok || string(name) != "@type" {
		return "", nil
	}
	quoted, ok := r.quoted()
	if !ok {
		return "", nil
	}
	url = string(quoted)
	mt, err := r.types.FindMessageByURL(url)
	if err != nil {
		return "", nil
	}
	if s := shapeOf(mt.Descriptor()).made(); s.form != object || s.isEmpty {
		return "", nil
	}
	return url, mt
}

// duration reads a google.protobuf.Duration without a sign and with digits on both sides of the point.
func (r *reader) duration() bool {
	text, ok := r.quoted()
	if !ok {
		return false
	}
	text, ok = bytes.CutSuffix(text, []byte("s"))
	whole, fraction, hasFraction := bytes.Cut(text, []byte("."))
	seconds, isWhole := digits(whole)
	if !ok || !isWhole || len(whole) > 11 {
		return false
	}
	r.wire = protowire.AppendVarint(protowire.AppendTag(r.wire, 1, protowire.VarintType), seconds)
	if !hasFraction {
		return true
	}
	nanos, isFraction := uint64(0), len(fraction) > 0 && len(fraction) <= 9
	for i := range 9 {
		nanos *= 10
		if i < len(fraction) {
			isFraction = isFraction && isDigit(fraction[i])
			nanos += uint64(fraction[i] - '0')
		}
	}
	r.wire = protowire.AppendVarint(protowire.AppendTag(r.wire, 2, protowire.VarintType), nanos)
	return isFraction
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// digits returns a number that has no sign, no point and no exponent.
func digits(text []byte) (n uint64, ok bool) {
	if len(text) == 0 || len(text) > 18 || text[0] == '0' && len(text) > 1 {
		return 0, false
	}
	for _, c := range text {
		if !isDigit(c) {
			return 0, false
		}
		n = 10*n + uint64(c-'0')
	}
	return n, true
}

// scalar reads a value that is no message, and writes its tag.
func (r *reader) scalar(f *field) bool {
	r.wire = protowire.AppendVarint(r.wire, f.tag)
	switch f.kind {
	case protoreflect.StringKind:
		at := r.open()
		if !r.string() {
			return false
		}
		r.close(at)
		return true
	case protoreflect.BytesKind:
		return r.bytes()
	case protoreflect.EnumKind:
		name, ok := r.quoted()
		n, known := f.values[string(name)]
		r.wire = protowire.AppendVarint(r.wire, uint64(int64(n)))
		return ok && known
	case protoreflect.BoolKind:
		is := r.peek() == 't'
		r.wire = protowire.AppendVarint(r.wire, protowire.EncodeBool(is))
		return r.word(strconv.FormatBool(is))
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		return r.float(f.kind)
	}
	return r.integer(f.kind)
}

// integer reads an integer, with or without quotes.
func (r *reader) integer(kind protoreflect.Kind) bool {
	inQuotes := r.takes('"')
	if !inQuotes {
		r.peek()
	}
	negative := r.pos < len(r.text) && r.text[r.pos] == '-'
	if negative {
		r.pos++
	}
	start := r.pos
	for r.pos < len(r.text) && isDigit(r.text[r.pos]) {
		r.pos++
	}
	u, ok := digits(r.text[start:r.pos])
	if inQuotes {
		ok = ok && r.pos < len(r.text) && r.text[r.pos] == '"'
		r.pos++
	}
	if !ok || negative && u == 0 {
		return false
	}
	n := int64(u)
	if negative {
		n = -n
	}
	switch kind {
	case protoreflect.Int32Kind, protoreflect.Int64Kind:
		r.wire = protowire.AppendVarint(r.wire, uint64(n))
	case protoreflect.Uint32Kind, protoreflect.Uint64Kind:
		r.wire, ok = protowire.AppendVarint(r.wire, u), !negative
	case protoreflect.Sint32Kind, protoreflect.Sint64Kind:
		r.wire = protowire.AppendVarint(r.wire, protowire.EncodeZigZag(n))
	case protoreflect.Sfixed32Kind:
		r.wire = protowire.AppendFixed32(r.wire, uint32(n))
	case protoreflect.Fixed32Kind:
		r.wire, ok = protowire.AppendFixed32(r.wire, uint32(u)), !negative
	case protoreflect.Sfixed64Kind:
		r.wire = protowire.AppendFixed64(r.wire, uint64(n))
	case protoreflect.Fixed64Kind:
		r.wire, ok = protowire.AppendFixed64(r.wire, u), !negative
	default:
		return false
	}
	switch kind {
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return n == int64(int32(n))
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return ok && u == uint64(uint32(u))
	}
	return ok
}

// float reads a number.
func (r *reader) float(kind protoreflect.Kind) bool {
	r.peek()
	start := r.pos
	for r.pos < len(r.text) && (isDigit(r.text[r.pos]) || r.text[r.pos] == '.' || r.text[r.pos] == '-') {
		r.pos++
	}
	text := r.text[start:r.pos]
	whole, fraction, hasFraction := bytes.Cut(bytes.TrimPrefix(text, []byte("-")), []byte("."))
	if _, ok := digits(whole); !ok || hasFraction && (len(fraction) == 0 || bytes.ContainsAny(fraction, ".-")) {
		return false
	}
	size := 64
	if kind == protoreflect.FloatKind {
		size = 32
	}
	n, err := strconv.ParseFloat(string(text), size)
	if size == 32 {
		r.wire = protowire.AppendFixed32(r.wire, math.Float32bits(float32(n)))
	} else {
		r.wire = protowire.AppendFixed64(r.wire, math.Float64bits(n))
	}
	return err == nil
}

// bytes reads bytes in base64.
func (r *reader) bytes() bool {
	text, ok := r.quoted()
	if !ok {
		return false
	}
	encoding := base64.StdEncoding
	if bytes.ContainsAny(text, "-_") {
		encoding = base64.URLEncoding
	}
	if len(text)%4 != 0 {
		encoding = encoding.WithPadding(base64.NoPadding)
	}
	at := r.open()
	var err error
	r.wire, err = encoding.AppendDecode(r.wire, text)
	r.close(at)
	return err == nil
}

// string reads a string. Escapes of surrogates are not plain.
func (r *reader) string() bool {
	if !r.takes('"') {
		return false
	}
	for start := r.pos; r.pos < len(r.text); {
		switch c := r.text[r.pos]; {
		case c == '"':
			r.wire = append(r.wire, r.text[start:r.pos]...)
			r.pos++
			return true
		case c < ' ':
			return false
		case c == '\\':
			r.wire = append(r.wire, r.text[start:r.pos]...)
			if !r.escape() {
				return false
			}
			start = r.pos
		default:
			r.pos++
		}
	}
	return false
}

// escapes maps the letter of an escape to its character.
var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// escape reads an escape.
func (r *reader) escape() bool {
	rest := r.text[r.pos+1:]
	switch {
	case len(rest) == 0:
		return false
	case escapes[rest[0]] != 0:
		r.wire = append(r.wire, escapes[rest[0]])
		r.pos += 2
		return true
	case rest[0] != 'u' || len(rest) < 5:
		return false
	}
	n, err := strconv.ParseUint(string(rest[1:5]), 16, 16)
	if err != nil || 0xd800 <= n && n < 0xe000 {
		return false
	}
	r.wire = append(r.wire, string(rune(n))...)
	r.pos += 6
	return true
}
