// Package event writes the log. Each line is an event: a value of a type of this package, with a stable name, a
// level, a message and keys. docs/logs.md has the comments of the types and of their fields (go generate
// ./tools/logsdoc). The comment of a type says what the event means, and after "Do:" what the reader does.
//
//	log := event.New(slog.NewJSONHandler(os.Stderr, nil))
//	log.Write(event.StepPublished{Step: "clusters", Written: 2})
package event

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"xdspub/diag"
	"xdspub/internal/crash"
)

// Event is an event of this package. Its exported fields are the keys of the line, in their order:
// ExpectedVersion becomes expected_version. If a field with the tag `event:"optional"` is zero, the line has no
// such key. A field with the tag `event:"-"` is not a key. The fields of an embedded struct are keys, too.
type Event interface{ kind() Kind }

// Kind is the name, the level and the message of an event. The Name is the same for all events of a type. The
// Level and the Message may depend on the fields, as those of Finding do.
type Kind struct {
	Name    string // the value of the key event
	Level   slog.Level
	Message string
}

// Record is a written event.
type Record struct {
	Time   time.Time
	Target string // empty for none
	Event  Event
}

// KindOf returns the Kind of an event.
func KindOf(e Event) Kind { return e.kind() }

// Log writes events as lines. A nil Log writes nothing. A Log is safe for concurrent use.
type Log struct {
	handler slog.Handler
	target  string // empty for none
	sinks   []func(Record)
	crashes *crashes // of all targets
}

// New returns a Log whose lines go to a handler. The Log also passes each event, whatever its level, to the
// sinks. A sink must not block, and must be safe for concurrent use.
func New(h slog.Handler, sinks ...func(Record)) *Log {
	return &Log{handler: h, sinks: sinks, crashes: new(crashes)}
}

// For returns a Log whose lines have the key target; without the key if target is empty. For of a nil Log
// returns nil.
func (l *Log) For(target string) *Log {
	if l == nil {
		return nil
	}
	return &Log{l.handler, target, l.sinks, l.crashes}
}

// Write passes an event to the sinks, and writes its line unless the handler discards its level. Write ignores
// errors of the handler.
func (l *Log) Write(e Event) {
	if l == nil {
		return
	}
	r := Record{time.Now(), l.target, e}
	for _, sink := range l.sinks {
		sink(r)
	}
	ctx := context.Background()
	if l.handler.Enabled(ctx, e.kind().Level) {
		_ = l.handler.Handle(ctx, r.line()) // an error of the log must not end the program
	}
}

const (
	// crashPause is how long Log.Crashed does not write a panic again: a client can repeat the request that panics.
	crashPause = 10 * time.Minute
	// mostCrashes is the number of remembered panics.
	mostCrashes = 100
)

// crashes are the panics that a Log has written.
type crashes struct {
	mu   sync.Mutex
	last map[string]time.Time // by target and text
}

// Crashed writes the InternalError of a panic, unless Crashed has written the same panic within ten minutes. Crashed
// does not panic, even if a sink does.
func (l *Log) Crashed(e *crash.Error) {
	if l != nil && l.crashes.isNew(l.target+"\n"+e.Error(), time.Now()) {
		_ = crash.Try(func() { l.Write(InternalError{Error: e, Stack: e.Stack}) })
	}
}

// isNew reports whether a panic was not written within crashPause, and remembers the panic.
func (c *crashes) isNew(text string, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last, known := c.last[text]; known && now.Sub(last) < crashPause {
		return false
	}
	if c.last == nil || len(c.last) >= mostCrashes {
		c.last = make(map[string]time.Time)
	}
	c.last[text] = now
	return true
}

// line returns the line of the event.
func (r Record) line() slog.Record {
	k := r.Event.kind()
	line := slog.NewRecord(r.Time, k.Level, k.Message, 0)
	line.AddAttrs(slog.String("event", k.Name))
	if r.Target != "" {
		line.AddAttrs(slog.String("target", r.Target))
	}
	v := reflect.ValueOf(r.Event)
	for _, f := range reflect.VisibleFields(v.Type()) {
		name, optional, ok := KeyOf(f)
		if value := v.FieldByIndex(f.Index); ok && !f.Anonymous && !(optional && value.IsZero()) {
			line.AddAttrs(slog.Any(name, plain(reflect.Indirect(value).Interface())))
		}
	}
	return line
}

// WriteJSON writes the line of the event as JSON, as a Log with a slog.JSONHandler does.
func (r Record) WriteJSON(w io.Writer) error {
	return slog.NewJSONHandler(w, nil).Handle(context.Background(), r.line())
}

// shortened is an event above the limit of Record.JSON.
type shortened struct {
	Time    time.Time `json:"time"`
	Level   string    `json:"level"`
	Message string    `json:"msg"`
	Event   string    `json:"event"`
	Target  string    `json:"target,omitempty"`
	Omitted int       `json:"omitted_bytes"`
}

// JSON returns the line of WriteJSON without its end. If the line is longer than most bytes, JSON returns a line that
// has the key omitted_bytes in place of the keys of the event.
func (r Record) JSON(most int) ([]byte, error) {
	var b bytes.Buffer
	if err := r.WriteJSON(&b); err != nil {
		return nil, err
	}
	line := bytes.TrimSpace(b.Bytes())
	if len(line) <= most {
		return line, nil
	}
	k := r.Event.kind()
	return json.Marshal(shortened{r.Time, k.Level.String(), k.Message, k.Name, r.Target, len(line)})
}

// KeyOf returns the key for a field of an event, and whether the line omits the key if the field is zero. ok is
// false if the field is not a key.
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

// plain returns a duration as text, because slog writes durations into JSON as numbers. plain hides secrets in texts
// and errors, which may quote Envoys, clients, servers and files. plain returns other values unchanged.
func plain(value any) any {
	switch v := value.(type) {
	case time.Duration:
		return v.String()
	case string:
		return diag.Hide(v)
	case error:
		return diag.Hide(v.Error())
	case []string:
		shown := make([]string, len(v))
		for i, text := range v {
			shown[i] = diag.Hide(text)
		}
		return shown
	}
	return value
}

// Names returns the names of all events, sorted.
func Names() []string {
	names := make([]string, len(all))
	for i, e := range all {
		names[i] = e.kind().Name
	}
	slices.Sort(names)
	return names
}

// all has an event of each type.
var all = []Event{
	AggregateDisplaced{}, AggregateRetired{}, AggregateStarted{},
	ApprovalUsed{}, ApprovalVoid{}, ApprovalWithdrawn{}, Approved{}, AwaitsConfirmation{}, CertificateExpired{}, CertificateExpiresSoon{}, CertificatesRead{},
	CertificatesUnreadable{}, ClientMemoryFull{}, ClientRefused{}, ClientWithoutVariant{}, ClockSet{}, ClustersWarming{}, ConfirmationExtended{}, Confirmed{},
	ConnectionsFull{},
	ControlSocketFailed{}, ControlSocketOpen{}, DecisionsInForce{}, DriftMended{}, Ended{}, EnvoyInSync{}, EnvoyReachable{},
	EnvoyRestarted{}, EnvoyUnknown{}, EnvoyUnreachable{}, EventsDropped{}, Failed{}, FileNotApplied{}, Finding{},
	FindingsOmitted{}, ForeignFolderRemoved{}, FreezeEnded{}, FreezeOverridden{}, Frozen{},
	GitLockStale{}, Guarded{}, Held{}, HistoryDamaged{}, HistoryFailed{}, HoldsLost{},
	HookFailed{}, HookRecovered{},
	InternalError{}, Interrupted{}, LeftoverStays{},
	NothingToUndo{}, OutputReplaced{}, PartPublished{}, PartWaits{}, PathChanged{}, PauseEnded{}, Paused{}, PinEnded{},
	PinRefused{}, Pinned{}, Published{},
	PublishedFileUnreadable{},
	PublishedLeftOut{}, ReasonMissing{}, RecordIncomplete{}, Recovered{}, RefusalEnded{}, RefusedKept{},
	ResourcesTrimmed{}, ResponseRejected{}, ResponseRetried{}, Resumed{}, RetiredClusterDamaged{}, RetiredFileMissing{},
	RetryRequested{}, RollbackFailed{}, RollbackKeptEdit{}, RollbackResumed{}, RollbackUnconfirmed{}, RolledBack{},
	RolloutDone{}, RolloutTakenBack{}, RolloutWaits{}, RolloutWave{},
	Serving{}, ServingPublished{}, SettingIgnored{}, SettingsRead{}, SnapshotConfirmed{}, SnapshotRefused{},
	SnapshotUnconfirmed{}, SnapshotWaits{}, SocketLost{}, SocketMadeAgain{}, SourceInvalid{}, SourceValid{}, StateReplaced{}, Status{},
	StepConfirmed{}, StepPublished{}, StepRefused{}, StepRetried{}, StepUnconfirmed{}, StoreFailed{}, StoreHasWriter{},
	StorePublished{}, StoreTerm{}, StoreWentBack{}, SystemdReachable{},
	SystemdUnreachable{}, TargetRemoved{},
	TrimRefused{}, Trimmed{}, Unchanged{}, UndoFailed{}, Undoing{}, UpstreamConnected{}, UpstreamIgnored{}, UpstreamLost{}, UpstreamOnDemand{},
	UpstreamRefused{},
	WatchComplete{}, WatchPartial{}, WatchPolling{}, Watching{},
	WebhookFailed{},
}
