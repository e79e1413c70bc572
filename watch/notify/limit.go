package notify

import (
	"context"
	"errors"
	"runtime"
	"syscall"
)

// limitError means that the system permits no further watches.
type limitError struct {
	err    error
	remedy string
}

func (e *limitError) Error() string { return e.err.Error() + ": " + e.remedy }
func (e *limitError) Unwrap() error { return e.err }

func isLimit(err error) bool {
	_, ok := errors.AsType[*limitError](err)
	return ok
}

// explain adds the name of the limit to misleading errors: "no space left on device" is not about the disk.
func explain(err error) error {
	switch {
	case isLimit(err):
		return err
	case errors.Is(err, syscall.ENOSPC):
		return &limitError{err, "raise the sysctl fs.inotify.max_user_watches"}
	case errors.Is(err, syscall.EMFILE) && runtime.GOOS == "linux":
		return &limitError{err, "raise the sysctl fs.inotify.max_user_instances or the limit of open files"}
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE): // kqueue opens every watched file
		return &limitError{err, "raise the limit of open files"}
	}
	return err
}

// fallBack switches to polling without any watch: a user has few watches, and an Envoy of the same user
// aborts without them.
func (t *tree) fallBack(ctx context.Context, limit error) error {
	t.close()
	t.limit = limit
	return t.poll(ctx)
}
