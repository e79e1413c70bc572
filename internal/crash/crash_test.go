package crash_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"xdspub/internal/crash"
)

func faulty(list []string, i int) (text string, err error) {
	defer crash.Catch(&err)
	defer crash.While(func() string { return fmt.Sprint("reading element ", i) })
	return list[i], nil
}

func Example() {
	_, err := faulty(nil, 2)
	fmt.Println(err)
	// Output: internal error: runtime error: index out of range [2] with length 0, while reading element 2
}

// TestError checks that an Error has the stack of the function that panicked, and that its texts are bounded.
func TestError(t *testing.T) {
	_, err := faulty(nil, 2)
	e, ok := errors.AsType[*crash.Error](err)
	if !ok || !strings.HasPrefix(e.Stack, "xdspub/internal/crash_test.faulty(") {
		t.Errorf("%v, %v", err, e)
	}
	if _, err := faulty([]string{"a"}, 0); err != nil {
		t.Error(err)
	}
	large := func() (err error) {
		defer crash.Catch(&err)
		panic("\x1b[2J\n" + strings.Repeat("é", 10_000))
	}()
	if text := large.Error(); len(text) > 600 || strings.ContainsAny(text, "\x1b\n") {
		t.Errorf("%d bytes: %q", len(text), text)
	}
	deep := func() (err error) {
		defer crash.Catch(&err)
		return recurse(500)
	}()
	if e, _ := errors.AsType[*crash.Error](deep); len(e.Stack) > 9<<10 {
		t.Errorf("a stack of %d bytes", len(e.Stack))
	}
}

func recurse(n int) error {
	if n == 0 {
		panic("deep")
	}
	return errors.Join(recurse(n - 1))
}

// TestAgain checks that Again calls a function again after a panic, and ends with the function or with done.
func TestAgain(t *testing.T) {
	var told []string
	crashed := func(e *crash.Error) { told = append(told, e.Value) }
	crash.Guard(func() { panic("once") }, crashed)()
	calls := 0
	crash.Again(nil, func() {
		if calls++; calls == 1 {
			panic("first")
		}
	}, crashed)()
	done := make(chan struct{})
	close(done)
	crash.Again(done, func() { panic("last") }, crashed)()
	if calls != 2 || strings.Join(told, " ") != "once first last" {
		t.Errorf("%d calls, %v", calls, told)
	}
}
