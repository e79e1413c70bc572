package trial

import (
	"context"
	"os"
)

// Answer is an Envoy's reaction to a bootstrap. Envoy accepts the bootstrap if all fields are empty.
type Answer struct {
	// Refusal is Envoy's reason for a refusal, which may quote the bootstrap.
	Refusal string
	// Crash is the cause of Envoy's death.
	Crash string
	// Hang is how long Envoy ran without an end.
	Hang string
}

// Taken reports whether Envoy takes the bootstrap.
func (a Answer) Taken() bool { return a == Answer{} }

// Ask asks Envoy about a bootstrap in JSON, which reaches it through a pipe: no file holds it, and
// none stays behind. An error means that Envoy could not be asked, or that ctx has ended, with
// which Envoy ends too.
func (e Envoy) Ask(ctx context.Context, bootstrap []byte) (Answer, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return Answer{}, err
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		_, _ = w.Write(bootstrap) // an Envoy that ends early prints the reason
		w.Close()                 // the end of the bootstrap
	}()
	// Envoy reads no other file below /dev, and takes a name without a suffix for JSON.
	ended := e.validate(ctx, "/dev/fd/3", r)
	w.Close() // somebody may still hold the other end, and not read
	<-written
	return ended.answer(ctx)
}
