package serve

import (
	"context"
	"errors"
	"testing"

	"google.golang.org/grpc"
)

// faultyStream is a stream whose requests can't be decoded.
type faultyStream struct{ grpc.ServerStream }

func (faultyStream) RecvMsg(any) error { panic("the codec is faulty") }

func (faultyStream) Context() context.Context { return context.Background() }

// TestReceiveCrashes checks that a panic of RecvMsg ends the stream. The library calls RecvMsg on a goroutine of its
// own.
func TestReceiveCrashes(t *testing.T) {
	ctx, end := context.WithCancelCause(t.Context())
	b := &bounded{ServerStream: faultyStream{}, session: &session{of: &sessions{crashes: crashes{}}, ctx: ctx, end: end}}
	if err := b.RecvMsg(nil); !errors.Is(err, errCrashed) || !errors.Is(context.Cause(ctx), errCrashed) {
		t.Errorf("RecvMsg returns %v, and the stream ends with %v", err, context.Cause(ctx))
	}
}
