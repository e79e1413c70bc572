// Package event is the log: each kind of line is an event, a type here, with a stable name, a
// level, a message and keys. The comments of the types and of their fields are what
// docs/logs.md says of them (go generate ./tools/logsdoc): what the event means, and, from
// "Do:" on, what to do about it. A Log takes nothing but events.
//
//	log := event.New(slog.NewJSONHandler(os.Stderr, nil))
//	log.Write(event.StepPublished{Step: "clusters", Written: 2})
package event

import (
	"context"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Event is an event of this package. Its exported fields are the keys of the line, in order: ExpectedVersion
// is expected_version. A field with the tag `event:"optional"` is left out if zero. A field with the tag
// `event:"-"` is no key.
type Event interface{ kind() Kind }

// Kind holds the common parts of all lines of an event. If the Level depends on the line, the event itself has
// a Level.
type Kind struct {
	Name    string // the value of the key event
	Level   slog.Level
	Message string
}

// Log writes events as lines. nil writes none.
type Log struct {
	handler slog.Handler
	target  string // empty for none
}

// New returns a Log whose lines go to a handler.
func New(h slog.Handler) *Log { return &Log{handler: h} }

// For returns the Log for a target, whose lines have the key target. An empty target stands for all targets.
func (l *Log) For(target string) *Log {
	if l == nil {
		return nil
	}
	return &Log{l.handler, target}
}

// Write writes the line of an event.
func (l *Log) Write(e Event) {
	k := e.kind()
	ctx := context.Background()
	if l == nil || !l.handler.Enabled(ctx, k.Level) {
		return
	}
	r := slog.NewRecord(time.Now(), k.Level, k.Message, 0)
	r.AddAttrs(slog.String("event", k.Name))
	if l.target != "" {
		r.AddAttrs(slog.String("target", l.target))
	}
	v := reflect.ValueOf(e)
	for i, f := range reflect.VisibleFields(v.Type()) {
		name, optional, ok := KeyOf(f)
		if ok && !(optional && v.Field(i).IsZero()) {
			r.AddAttrs(slog.Any(name, plain(reflect.Indirect(v.Field(i)).Interface())))
		}
	}
	_ = l.handler.Handle(ctx, r) // a log that nobody reads ends nothing
}

// KeyOf returns the key of an event's field; ok is false if the field is no key.
func KeyOf(f reflect.StructField) (name string, optional, ok bool) {
	tags := strings.Split(f.Tag.Get("event"), ",")
	return snake(f.Name), slices.Contains(tags, "optional"), !slices.Contains(tags, "-")
}

// snake returns a Go name as a key.
func snake(name string) string {
	var b strings.Builder
	for i, r := range name {
		if i > 0 && unicode.IsUpper(r) && unicode.IsLower(rune(name[i-1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// plain makes a value look the same in text and in JSON: JSON has no durations.
func plain(value any) any {
	if d, ok := value.(time.Duration); ok {
		return d.String()
	}
	return value
}
