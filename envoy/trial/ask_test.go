package trial_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"xdspub/envoy/trial"
	"xdspub/tools/envoytest"
)

// TestAsk: an Envoy reads a bootstrap of any length from a pipe, and leaves no files behind.
func TestAsk(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	envoy := trial.Envoy{Program: envoytest.Binary(t)}
	long := `{"static_resources": {"clusters": [{"name": "a", "type": "STATIC"}]}` + strings.Repeat(" ", 1<<20) + "}"
	for text, want := range map[string]string{
		long: "",
		`{}`: "",
		`{"static_resources": {"clusters": [{"name": "a", "type": "EDS"}]}}`: "cannot create an EDS cluster without an EDS config",
		`{"nod": 1}`: "no such field",
		`{"node":`:   "INVALID_ARGUMENT",
	} {
		// protobuf randomly writes one space or two.
		answer, err := envoy.Ask(t.Context(), []byte(text))
		if err != nil || answer.Taken() != (want == "") || !strings.Contains(strings.Join(strings.Fields(answer.Refusal), " "), want) {
			t.Errorf("%.100s: %+v, %v, want %q", text, answer, err, want)
		}
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Error(left, err)
	}
}

// TestAskOdd: a program that dies or hangs causes an Answer, and a program other than Envoy an error. None of them
// reads the bootstrap, which is longer than the buffer of a pipe.
func TestAskOdd(t *testing.T) {
	long := []byte(strings.Repeat(" ", 1<<20))
	for script, want := range map[string]string{
		"kill -SEGV $$": "signal: segmentation fault",
		"echo '[critical][assert] assert failure: a == b. Details: none'; kill -ABRT $$": "signal: aborted; assert failure: a == b. Details: none",
		"exit 139": "exit status 139",
	} {
		answer, err := trial.Envoy{Program: program(t, script)}.Ask(t.Context(), long)
		if err != nil || answer.Taken() || !strings.HasPrefix(answer.Crash, want) {
			t.Errorf("%s: %+v, %v, want %s", script, answer, err, want)
		}
	}
	slow := trial.Envoy{Program: program(t, "sleep 3600"), Patience: 50 * time.Millisecond}
	if answer, err := slow.Ask(t.Context(), long); err != nil || answer.Hang != "it did not end within 50ms" {
		t.Errorf("%+v, %v", answer, err)
	}
	for script, want := range map[string]string{
		"exit 0":         "the program exited without judging the bootstrap: is it Envoy?",
		"echo hm; false": "exit status 1; it said: hm",
		"yes":            "it printed more than 1048576 bytes",
	} {
		if answer, err := (trial.Envoy{Program: program(t, script)}).Ask(t.Context(), long); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v, want %s", script, answer, err, want)
		}
	}
}

// TestAskEndsAll: the child processes of a program end with it, even if they ignore SIGTERM.
func TestAskEndsAll(t *testing.T) {
	endsAll(t, "", func(ctx context.Context, e trial.Envoy) error {
		_, err := e.Ask(ctx, []byte("{}"))
		return err
	})
}

// endsAll runs a program that first runs a command, and starts a child. Both ignore SIGTERM. endsAll fails the test
// unless both end with the context.
func endsAll(t *testing.T, first string, run func(context.Context, trial.Envoy) error) {
	t.Helper()
	fifo := filepath.Join(t.TempDir(), "alive")
	nested := program(t, "trap '' TERM\n"+first+"sh -c \"trap '' TERM; mkfifo "+fifo+"; exec 3<>"+fifo+"; sleep 3600\" &\nwait")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, trial.Envoy{Program: nested}) }()
	opens := func() bool { // reports whether a process has the fifo open for reading
		f, err := os.OpenFile(fifo, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if err == nil {
			f.Close()
		}
		return err == nil
	}
	envoytest.Eventually(t, 2*time.Minute, "the program runs", func() (bool, string) { return opens(), "" })
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	envoytest.Eventually(t, 2*time.Minute, "what it started ends", func() (bool, string) { return !opens(), "" })
}
