package envoytest

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// Trial is Envoy's reaction to a configuration.
type Trial struct {
	// Live means that Envoy became LIVE, Ended that Envoy ended by itself. An Envoy that did neither hung.
	Live, Ended bool
	// Refused means that Envoy counted update_rejected or update_failure, Dropped that Envoy counted unknown
	// fields, once LIVE. An unknown host name counts as update_failure of its cluster in Envoy, but not here.
	Refused, Dropped bool
	Log              string
}

// Try starts an Envoy on an arbitrary configuration, and ends the Envoy when it is LIVE, has ended, or
// patience is over.
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
		if status, stats, err := e.ask(http.MethodGet,
			"/stats?usedonly&filter="+`(update_rejected|update_failure|dynamic_unknown_fields)$`); err == nil && status == http.StatusOK {
			for line := range strings.Lines(stats) {
				name, count, _ := strings.Cut(strings.TrimSpace(line), ": ")
				switch {
				case count == "0":
				case strings.HasPrefix(name, "cluster.") && strings.HasSuffix(name, "update_failure") &&
					!strings.Contains(e.Log(), "Filesystem config update failure"):
				case strings.HasSuffix(name, "dynamic_unknown_fields"):
					trial.Dropped = true
				default:
					trial.Refused = true
				}
			}
		} else { // Envoy died of its configuration
			trial.Ended = true
		}
	}
	trial.Log = e.Log()
	return trial
}

// live asks Envoy whether it is LIVE. A starting Envoy may not answer yet.
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
