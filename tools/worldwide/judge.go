package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"xdspub/diag"
)

const (
	patience = 20 * time.Second // the time limit of a program for one configuration
	slow     = 2 * time.Second  // report lists configurations that take xdspub longer
	maxSaid  = 1 << 20          // bytes of each output that are kept
	maxNamed = 64               // the files that copyNamed copies
)

// judge gives configurations to both programs.
type judge struct {
	xdspub, envoy string
	known         *verdicts
	// serve is the function serve, or its replacement in a test.
	serve func(ctx context.Context, envoy, dir, config string) served
}

// judged holds the verdicts of both programs on a unit.
type judged struct {
	unit
	envoy verdict
	// served is the verdict of a serving Envoy on a unit that we refuse and --mode validate passes; nil if no
	// such Envoy was asked.
	served *served
	// findings are the errors of xdspub about the part that --mode validate reads, which excludes files that a
	// bootstrap subscribes to.
	findings diag.List
	took     time.Duration // of xdspub
	hung     bool          // xdspub exceeded its time limit
	// failed is the reason if xdspub gave no verdict.
	failed string
	err    error // of this program
}

// verdict is the end of envoy --mode validate.
type verdict struct {
	// Exit is the exit status; -1 after a signal.
	Exit int
	Hung bool
	Said string
}

// judge gives a unit to both programs, and a false alarm also to a serving Envoy.
func (j *judge) judge(ctx context.Context, u unit) (v judged) {
	v.unit = u
	dir, err := os.MkdirTemp("", "worldwide-")
	if err != nil {
		v.err = err
		return v
	}
	defer os.RemoveAll(dir)
	config := filepath.Join(dir, "bootstrap"+u.suffix)
	if v.err = errors.Join(os.WriteFile(config, u.text, 0o600), u.copyNamed(dir)); v.err != nil {
		return v
	}
	ours := start(ctx, dir, j.xdspub, "validate", "--format", "json", "--root", dir, config)
	v.took, v.hung = ours.took, ours.hung
	v.findings, v.failed = read(ours, config)
	var ok bool
	if v.envoy, ok = j.known.of(u); !ok {
		theirs := start(ctx, dir, j.envoy, "--mode", "validate", "-c", config, "--disable-hot-restart", "--concurrency", "1", "-l", "warning")
		v.envoy = verdict{theirs.exit, theirs.hung, said(string(theirs.stdout) + string(theirs.stderr))}
		if ctx.Err() == nil {
			v.err = errors.Join(theirs.err, j.known.add(u, v.envoy))
		}
	}
	if v.err = errors.Join(v.err, ours.err); v.err == nil && v.outcome() == falseAlarm {
		s := j.serve(ctx, j.envoy, dir, config)
		v.served = &s
	}
	return v
}

// relative matches texts that may be the relative path of a file.
var relative = regexp.MustCompile(`[\w.@-][\w.@/-]*\.\w+`)

// copyNamed copies the files that the configuration names by relative paths into dir. It copies only files below
// u.roots.
func (u unit) copyNamed(dir string) error {
	named := make(map[string]bool)
	for _, name := range relative.FindAllString(string(u.text), -1) {
		if named[name] || !filepath.IsLocal(name) || len(named) == maxNamed {
			continue
		}
		named[name] = true
		for _, root := range u.roots {
			data, err := readRegular(root, name)
			if err != nil {
				continue // most matches of relative are no files
			}
			to := filepath.Join(dir, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, data, 0o600)); err != nil {
				return err
			}
			break
		}
	}
	return nil
}

func readRegular(dir, name string) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if info, err := root.Stat(name); err != nil || !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, fmt.Errorf("%s is no file to copy: %w", name, err)
	}
	return root.ReadFile(name)
}

// process is the end of a process.
type process struct {
	exit           int
	stdout, stderr []byte
	took           time.Duration
	hung           bool
	err            error
}

// start runs a program in a directory until it ends, or until patience is over.
func start(ctx context.Context, dir, program string, args ...string) (p process) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C reaches only this process, which then saves the verdicts
	var stdout, stderr limited
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = time.Second
	begin := time.Now()
	err := cmd.Run()
	p = process{stdout: stdout.Bytes(), stderr: stderr.Bytes(), took: time.Since(begin), hung: errors.Is(ctx.Err(), context.DeadlineExceeded)}
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended && !p.hung {
		p.err = err
	}
	if cmd.ProcessState != nil {
		p.exit = cmd.ProcessState.ExitCode()
	}
	return p
}

// limited keeps the first bytes written to it.
type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	l.Buffer.Write(p[:min(len(p), maxSaid-l.Len())])
	return len(p), nil
}

// read returns the errors that xdspub validate found in config, or the reason if it gave no verdict.
func read(p process, config string) (list diag.List, failed string) {
	var out struct{ Diagnostics diag.List }
	if err := json.Unmarshal(p.stdout, &out); p.exit > 1 || p.exit < 0 || err != nil {
		return nil, fmt.Sprintf("exit %d: %s", p.exit, firstLine(string(p.stderr)))
	}
	for _, d := range out.Diagnostics {
		if d.Severity == diag.Error && (d.File == config || d.File == "") {
			list = append(list, d)
		}
	}
	return list, ""
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

var (
	logged = regexp.MustCompile(`(?m)^\[[^]]*\]\[[^]]*\]\[(?:error|critical)\]\[[^]]*\] \[[^]]*\] (.*)$`)
	// initializing matches the message of --mode validate about a refusal.
	initializing = regexp.MustCompile(`error initializing configuration '[^']*': (.*)`)
)

// said returns Envoy's reason for a refusal.
func said(output string) string {
	if m := initializing.FindStringSubmatch(output); m != nil {
		return m[1]
	}
	var all []string
	for _, line := range logged.FindAllStringSubmatch(output, -1) {
		all = append(all, line[1])
	}
	if len(all) == 0 {
		return firstLine(output)
	}
	return strings.Join(all, " | ")
}
