package store

import (
	"context"
	"math/rand/v2"
	"time"
)

// minPause is the pause after the first session, and maxPause the longest pause. Tests shorten maxPause.
const minPause = time.Second

var maxPause = 30 * time.Second

// again runs one session after another until ctx ends. failed gets the error of a session. The pause between two
// sessions doubles up to maxPause. A session that calls works makes the next pause minPause.
func again(ctx context.Context, session func(works func()) error, failed func(error)) {
	pause := minPause
	for ctx.Err() == nil {
		err := session(func() { pause = minPause })
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			failed(err)
		}
		select {
		case <-time.After(jittered(pause)):
		case <-ctx.Done():
		}
		pause = min(2*pause, maxPause)
	}
}

// jittered returns a duration between a half and the whole of d, so that many processes don't act at once.
func jittered(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }
