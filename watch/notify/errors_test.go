package notify

import (
	"errors"
	"fmt"
	"testing"
)

// TestErrorQueue checks that sending an error never waits for its receiver. Otherwise fsnotify, which holds
// its lock, and the watch would block each other.
func TestErrorQueue(t *testing.T) {
	in := make(chan error)
	q := newErrorQueue(in, nil)
	for i := range 5 {
		in <- fmt.Errorf("error %d", i) // would hang here
	}
	for i := range 3 {
		if got := <-q.out; got.Error() != fmt.Sprintf("error %d", i) {
			t.Errorf("%v in place of error %d", got, i)
		}
	}
	in <- errors.New("error 5")
	for i := 3; i < 6; i++ {
		if got := <-q.out; got.Error() != fmt.Sprintf("error %d", i) {
			t.Errorf("%v in place of error %d", got, i)
		}
	}
	in <- errors.New("nobody fetches this one")
	close(in)
	q.wait()
}
