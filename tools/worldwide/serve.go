package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"xdspub/tools/unixhttp"
)

// apartCommand is the argument that runs this program as its own helper, apart from the machine.
const apartCommand = "apart"

// served is the verdict of a serving Envoy on a configuration. `--mode validate` opens no socket, starts no
// subscription, and loads no extension of the bootstrap. So --mode validate accepts some configurations with which
// a serving Envoy ends.
type served struct {
	refuses bool // the Envoy ended by itself, or counted a refusal
	said    string
	err     error // the reason if there is no verdict
}

func (s served) String() string {
	switch {
	case s.err != nil:
		return fmt.Sprintf("an Envoy that serves can't be asked: %v", s.err)
	case s.refuses:
		return "an Envoy that serves refuses: " + s.said
	default:
		return "an Envoy that serves goes on"
	}
}

// ofMachine matches Envoy's messages about obstacles of the machine, not faults of the configuration.
var ofMachine = regexp.MustCompile(`(?i)cannot bind|read-only file system|permission denied|operation not permitted`)

// serve starts an Envoy on a configuration, apart from the machine. It waits until the Envoy is LIVE or has ended,
// or until patience is over, and then ends the Envoy.
func serve(ctx context.Context, envoy, dir, config string) (s served) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	socket := filepath.Join(dir, "admin.socket")
	cmd, err := apart(dir, envoy, "-c", config, "--config-yaml", fmt.Sprintf("admin: {address: {pipe: {path: %q}}}", socket),
		"--disable-hot-restart", "--concurrency", "1", "-l", "warning")
	if err != nil {
		return served{err: err}
	}
	var output limited
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		return served{err: err}
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it ended is in cmd.ProcessState
		close(ended)
	}()
	defer func() {
		select {
		case <-ended: // the id may be another process's by now
		default:
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			<-ended
		}
		s.judge(output.String())
	}()
	admin := unixhttp.Client(socket)
	for {
		select {
		case <-ended:
			return served{refuses: true}
		case <-ctx.Done(): // the Envoy waits for an answer that does not come
			return served{}
		case <-time.After(20 * time.Millisecond):
		}
		if state, err := get(ctx, admin, "/ready"); err != nil || strings.TrimSpace(state) != "LIVE" {
			continue
		}
		counts, err := get(ctx, admin, "/stats?usedonly&filter="+`(update_rejected|listener_create_failure)$`)
		if err == nil {
			return served{refuses: strings.TrimSpace(counts) != ""}
		}
	}
}

// judge sets the reason of a refusal by the output of the Envoy. If the machine is the reason, judge turns the
// refusal into err.
func (s *served) judge(output string) {
	s.said = said(output)
	if s.refuses && (strings.HasPrefix(output, "worldwide: ") || ofMachine.MatchString(s.said)) {
		s.refuses, s.err = false, errors.New(s.said)
	}
}

// get asks the admin interface.
func get(ctx context.Context, admin *http.Client, path string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://admin"+path, nil)
	if err != nil {
		return "", err
	}
	response, err := admin.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxSaid))
	return string(body), err
}
