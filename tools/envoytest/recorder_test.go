package envoytest_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// recorder is the testing.TB of a test that is meant to fail: its faults and its
// words are noted and not passed on. The rest is the real one's.
type recorder struct {
	testing.TB
	said            strings.Builder
	failed, skipped bool
	cleanups        []func()
}

// record runs a test, with its cleanups, to its end.
func record(t testing.TB, test func(t testing.TB)) *recorder {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			for _, f := range slices.Backward(r.cleanups) {
				f()
			}
		}()
		test(r)
	}()
	<-done
	return r
}

func (r *recorder) String() string { return r.said.String() }
func (r *recorder) Failed() bool   { return r.failed }

func (r *recorder) Cleanup(f func())                  { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Log(args ...any)                   { fmt.Fprintln(&r.said, args...) }
func (r *recorder) Logf(format string, args ...any)   { r.Log(fmt.Sprintf(format, args...)) }
func (r *recorder) Error(args ...any)                 { r.failed = true; r.Log(args...) }
func (r *recorder) Errorf(format string, args ...any) { r.Error(fmt.Sprintf(format, args...)) }
func (r *recorder) Fatal(args ...any)                 { r.Error(args...); runtime.Goexit() }
func (r *recorder) Fatalf(format string, args ...any) { r.Fatal(fmt.Sprintf(format, args...)) }
func (r *recorder) Skip(args ...any)                  { r.skipped = true; r.Log(args...); runtime.Goexit() }
