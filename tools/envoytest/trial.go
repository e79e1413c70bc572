package envoytest

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// Trial is what an Envoy made of its configuration.
type Trial struct {
	// Live tells that it became LIVE, Ended that it ended by itself; where it did
	// neither it hung.
	Live, Ended bool
	// Refused and Dropped tell that it counted update_rejected or update_failure, or
	// fields that it does not know, once it was LIVE. A host name that DNS does not
	// know is an update_failure of its cluster to Envoy, and none here.
	Refused, Dropped bool
	Log              string
}

// Try starts an Envoy on a configuration that may be anything, and ends it once it
// is LIVE, has ended by itself, or has been neither for as long as patience lasts.
func Try(t testing.TB, o Options, patience time.Duration) Trial {
	t.Helper()
	e := launch(t, o)
	e.ending.Store(true)
	defer func() {
		e.Kill(t)
		_ = os.RemoveAll(e.files) // there may be thousands in one run
		e.over = true
	}()
	trial := Trial{}
	for deadline := time.Now().Add(patience); !trial.Live && !trial.Ended && time.Now().Before(deadline); {
		select {
		case <-e.exited:
			trial.Ended = true
		case <-time.After(5 * time.Millisecond):
			trial.Live = e.live(t)
		}
	}
	if trial.Live {
		if status, stats, err := e.ask(http.MethodGet, "/stats?usedonly&filter="+`(update_rejected|update_failure|dynamic_unknown_fields)$`); err == nil && status == http.StatusOK {
			for line := range strings.Lines(stats) {
				name, count, _ := strings.Cut(strings.TrimSpace(line), ": ")
				switch {
				case count == "0":
				case strings.HasPrefix(name, "cluster.") && strings.HasSuffix(name, "update_failure") && !strings.Contains(e.Log(), "Filesystem config update failure"):
				case strings.HasSuffix(name, "dynamic_unknown_fields"):
					trial.Dropped = true
				default:
					trial.Refused = true
				}
			}
		} else { // it died of what it was just given
			trial.Ended = true
		}
	}
	trial.Log = e.Log()
	return trial
}

// live asks whether Envoy is LIVE, which it may not be able to say yet.
func (e *Envoy) live(t testing.TB) bool {
	t.Helper()
	if e.admin == nil {
		address := e.address(t)
		if address == "" {
			return false
		}
		e.admin = adminClient(address)
	}
	_, body, err := e.ask(http.MethodGet, "/ready")
	return err == nil && strings.TrimSpace(body) == "LIVE"
}
