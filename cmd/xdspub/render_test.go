package main

import (
	"errors"
	"testing"

	"xdspub/pipeline"
	"xdspub/publish"
)

// TestSaysUndone: what is said to be out after a refusal is out.
func TestSaysUndone(t *testing.T) {
	refused := &publish.RefusedError{}
	undone := pipeline.Result{Result: publish.Result{Undone: []publish.StepResult{{Name: "listeners"}}}}
	for _, tt := range []struct {
		name   string
		result pipeline.Result
		err    error
		want   string
	}{
		{"back", undone, refused, "what was out before is out again"},
		{"a first publish", pipeline.Result{}, refused, "there is nothing to put back, so it stays"},
		{"a full disk on the way back", undone, errors.Join(refused, errors.New("no space")), "it could not be put back whole, the next run goes on with that"},
	} {
		if got := saysUndone(tt.result, refused, tt.err); got != tt.want {
			t.Errorf("%s: %s", tt.name, got)
		}
	}
}
