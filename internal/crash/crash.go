// Package crash turns a panic into an error, so that a bug in one place does not end the process. Package crash
// can't catch what the runtime does not let a program recover from, such as a full memory.
//
//	func (t *Tree) read(path string) (f *File, err error) {
//		defer crash.Catch(&err)
//		…
package crash

import (
	"fmt"
	"runtime/debug"
	"strings"
	"time"
	"unicode"
)

const (
	// maxValue and maxStack bound the texts of an Error, in bytes.
	maxValue = 500
	maxStack = 8 << 10
)

// Error is a caught panic.
type Error struct {
	// Value is the value of the panic as text.
	Value string
	// While says what the program did, such as "judging cluster a"; empty if unknown.
	While string
	// Rule is the code of the rule that panicked; empty if no rule panicked.
	Rule string
	// Stack is the beginning of the stack of the goroutine that panicked.
	Stack string
}

func (e *Error) Error() string {
	text := "internal error: " + e.Value
	if e.While != "" {
		text += ", while " + e.While
	}
	return text
}

// Of returns the Error for a value that recover has returned. Of must be called by the deferred function that calls
// recover, because the Error gets the stack of its caller. If the value is an *Error, Of returns the value.
func Of(value any) *Error {
	if e, ok := value.(*Error); ok {
		return e
	}
	return &Error{Value: shortened(printable(fmt.Sprint(value)), maxValue), Stack: shortened(stack(), maxStack)}
}

// Catch sets *err if the function that defers Catch panics.
func Catch(err *error) {
	if value := recover(); value != nil {
		*err = Of(value)
	}
}

// Try calls f, and returns the panic of f; nil for none.
func Try(f func()) (e *Error) {
	defer func() {
		if value := recover(); value != nil {
			e = Of(value)
		}
	}()
	f()
	return nil
}

// Guard returns a function that calls f. If f panics, the function calls crashed with the panic. A goroutine and a
// timer need a Guard, because a panic that no function of the goroutine recovers ends the process:
//
//	go crash.Guard(f, log.Crashed)()
func Guard(f func(), crashed func(*Error)) func() {
	return func() {
		if e := Try(f); e != nil {
			crashed(e)
		}
	}
}

// afterCrash is the pause of Again.
const afterCrash = time.Second

// Again returns a function that calls f. If f panics, the function calls crashed with the panic, and calls f again
// after a second, unless done is closed. Again is for a loop that needs nothing of its earlier rounds.
func Again(done <-chan struct{}, f func(), crashed func(*Error)) func() {
	return func() {
		for {
			e := Try(f)
			if e == nil {
				return
			}
			crashed(e)
			select {
			case <-time.After(afterCrash):
			case <-done:
				return
			}
		}
	}
}

// While adds to a panic of the function that defers While what the function did. doing is called after a panic only.
func While(doing func() string) {
	if value := recover(); value != nil {
		e := Of(value)
		if e.While == "" {
			e.While = doing()
		}
		panic(e)
	}
}

// stack returns the stack of the caller, from the function that panicked.
func stack() string {
	text := string(debug.Stack())
	if i := strings.LastIndex(text, "\npanic("); i >= 0 { // the frames before are of the recovery
		if _, rest, ok := strings.Cut(text[i+1:], "\n\t"); ok {
			_, text, _ = strings.Cut(rest, "\n")
		}
	}
	return text
}

// printable returns a text with a space for each character that can't be printed, such as a line break.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
}

// shortened returns at most n bytes of a text.
func shortened(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + "…"
}
