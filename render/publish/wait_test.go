package publish

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestGap checks the gaps between three steps, of which one moves nothing, with a fake clock.
func TestGap(t *testing.T) {
	out := t.TempDir()
	publishOnce(t, out, oldPlan())
	synctest.Test(t, func(t *testing.T) {
		d := mustOpen(t, out, osDisk{})
		p := newPlan()
		p.Gap = 3 * time.Second
		p.Steps[1].Write = p.Steps[1].Write[:1] // unchanged
		start := time.Now()
		mustPublish(t, d, p)
		if took := time.Since(start); took != p.Gap {
			t.Errorf("waited %v, want one gap of %v", took, p.Gap)
		}
		d.Close()
	})
}

func TestCancel(t *testing.T) {
	out := t.TempDir()
	publishOnce(t, out, oldPlan())
	synctest.Test(t, func(t *testing.T) {
		d := mustOpen(t, out, osDisk{})
		p := newPlan()
		p.Gap = time.Hour
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Minute)
		defer cancel()
		res, err := d.Publish(ctx, p)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "after step clusters") {
			t.Errorf("error %v", err)
		}
		if len(res.Steps) != 2 {
			t.Errorf("moved %v", res.Steps)
		}
		want := maps.Clone(newFiles)
		want["lds/lds.json"], want["eds/old/eds.json"] = oldFiles["lds/lds.json"], oldFiles["eds/old/eds.json"]
		checkPublished(t, out, want)
		checkPrivate(t, out)
		if m, err := ReadManifest(out); err != nil || m.Snapshot != "s1" || !m.Published.Equal(day1) || len(m.Retired) != 1 {
			t.Errorf("manifest %+v, %v", m, err)
		}

		if _, err := d.Publish(ctx, p); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "before the first step") {
			t.Errorf("error %v", err)
		}
		checkPrivate(t, out)

		start := time.Now()
		mustPublish(t, d, p) // only one step moves files, so there is no gap
		if time.Since(start) != 0 {
			t.Errorf("waited %v", time.Since(start))
		}
		checkPublished(t, out, newFiles)
		d.Close()
	})
}
