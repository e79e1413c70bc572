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
	// Live means that Envoy became LIVE. Ended means that Envoy ended by itself, before or after that. If both are
	// false, Envoy hung.
	Live, Ended bool
	// Refused means that the LIVE Envoy had counted update_rejected or update_failure. Dropped means that the LIVE
	// Envoy had counted unknown fields. Envoy counts an unknown host name as update_failure of its cluster; Refused
	// does not.
	Refused, Dropped bool
	Log              string
}

// Try starts an Envoy on an arbitrary configuration. It ends the Envoy when the Envoy is LIVE, or when patience is
// over.
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
		} else { // Envoy crashed after it was LIVE
			trial.Ended = true
		}
	}
	trial.Log = e.Log()
	return trial
}

// live reports whether Envoy is LIVE. It reports false if Envoy does not answer yet.
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
