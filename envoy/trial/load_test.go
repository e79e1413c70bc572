package trial_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"xdspub/envoy/trial"
	"xdspub/tools/envoytest"
)

// waits is an Ask that only waits until the Envoy ends.
func waits(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// boot returns a Prepare that writes a bootstrap, and stores its directory in dir.
func boot(dir *string) func(string) (string, error) {
	return func(private string) (string, error) {
		*dir = private
		path := filepath.Join(private, "envoy.yaml")
		return path, os.WriteFile(path, []byte(good), 0o600)
	}
}

// leftNothing fails the test if there is a file in the folder for temporary files.
func leftNothing(t *testing.T) {
	t.Helper()
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Error(left, err)
	}
}

// TestLoad: Load returns Envoy's reaction to a configuration. The Envoy ends with Ask, and its directory is removed.
func TestLoad(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	odd := errors.New("odd")
	for _, c := range []struct {
		script string
		ask    func(context.Context) error
		want   trial.Answer
		err    string
	}{
		{"echo loaded; exec sleep 3600", func(context.Context) error { return nil }, trial.Answer{}, ""},
		{"exec sleep 3600", func(context.Context) error { return odd }, trial.Answer{}, "odd"},
		{`echo "error initializing configuration '$2': bad"; exit 1`, waits, trial.Answer{Refusal: "bad\n"}, ""},
		{"kill -SEGV $$", waits, trial.Answer{Crash: "signal: segmentation fault"}, ""},
		{"kill -SEGV $$", func(ctx context.Context) error { return errors.Join(odd, waits(ctx)) }, trial.Answer{Crash: "signal: segmentation fault"}, ""},
		{"exit 0", waits, trial.Answer{}, "is it Envoy?"},
	} {
		var dir string
		answer, _, err := trial.Envoy{Program: program(t, c.script)}.Load(t.Context(), trial.Throwaway{Prepare: boot(&dir), Ask: c.ask})
		answer.Crash = strings.TrimSuffix(answer.Crash, " (core dumped)")
		if answer != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %+v, %v, want %+v, %q", c.script, answer, err, c.want, c.err)
		}
	}
	slow := trial.Envoy{Program: program(t, "exec sleep 3600"), Patience: 50 * time.Millisecond}
	var dir string
	if answer, _, err := slow.Load(t.Context(), trial.Throwaway{Prepare: boot(&dir), Ask: waits}); err != nil || answer.Hang != "it did not end within 50ms" {
		t.Errorf("%+v, %v", answer, err)
	}
	fails := trial.Throwaway{Prepare: func(string) (string, error) { return "", odd }, Ask: waits}
	if _, _, err := slow.Load(t.Context(), fails); !errors.Is(err, odd) {
		t.Error(err)
	}
	leftNothing(t)
}

// TestLoadIsPrivate: only this user can read the directory, and its path is short enough for a socket, even if
// TMPDIR is long.
func TestLoadIsPrivate(t *testing.T) {
	for _, name := range []string{"short", strings.Repeat("long", 50)} {
		temporary := filepath.Join(t.TempDir(), name)
		if err := os.Mkdir(temporary, 0o700); err != nil {
			t.Fatal(err)
		}
		t.Setenv("TMPDIR", temporary)
		var dir string
		prepare := boot(&dir)
		_, _, err := trial.Envoy{Program: envoytest.Binary(t)}.Load(t.Context(), trial.Throwaway{
			Prepare: prepare,
			Ask: func(context.Context) error {
				info, err := os.Stat(dir)
				if err == nil && info.Mode().Perm() != 0o700 || len(dir) > 100 {
					t.Error(dir, info.Mode())
				}
				return err
			},
		})
		if err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Error(dir, err)
		}
	}
}

// TestLoadEndsAll: an Envoy and its child processes end with the context, and leave no files behind.
func TestLoadEndsAll(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	endsAll(t, ": >${2%/*}/admin\n", func(ctx context.Context, e trial.Envoy) error {
		var dir string
		_, _, err := e.Load(ctx, trial.Throwaway{Prepare: boot(&dir), Ask: waits})
		return err
	})
	leftNothing(t)
}
