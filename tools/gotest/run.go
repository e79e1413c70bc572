package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// event is a line of go test -json (go doc test2json).
type event struct {
	Action     string
	Package    string
	Test       string
	Elapsed    float64
	Output     string
	ImportPath string // of what did not build
}

// run runs go test -json, writes the events to a file, and prints to w the output that go test has without -json.
// run returns the exit status of go test. The standard error of go test is that of this process.
func run(events string, arguments []string, w io.Writer) (status int, err error) {
	file, err := os.Create(events)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	cmd := exec.Command("go", append([]string{"test", "-json"}, arguments...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	failed := follow(io.TeeReader(out, file), w)
	err = cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		if !exit.Exited() {
			return 0, err
		}
		return exit.ExitCode(), failed
	}
	return 0, errors.Join(err, failed)
}

// follow prints the output of each package when the package has ended.
func follow(r io.Reader, w io.Writer) error {
	open := make(map[string]*packageLog)
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		var e event
		switch {
		case line == "":
		case json.Unmarshal([]byte(line), &e) != nil:
			_, _ = io.WriteString(w, line) // the output of a program that does not go through the test framework
		case e.Action == "build-output":
			_, _ = io.WriteString(w, e.Output)
		case e.Package != "":
			p := open[e.Package]
			if p == nil {
				p = &packageLog{tests: make(map[string]*testLog)}
				open[e.Package] = p
			}
			if p.add(e) {
				p.print(w)
				delete(open, e.Package)
			}
		}
		if err == nil {
			continue
		}
		for _, p := range open { // go test ended before these packages did
			p.failed = true
			p.print(w)
		}
		if err == io.EOF {
			return nil
		}
		return err
	}
}

// packageLog holds the output of a package's tests. Output outside of tests has the empty name.
type packageLog struct {
	order  []string
	tests  map[string]*testLog
	failed bool
}

type testLog struct {
	result string
	lines  []string
}

// add adds an event, and reports whether the package has ended.
func (p *packageLog) add(e event) (ended bool) {
	t := p.tests[e.Test]
	if t == nil {
		t = new(testLog)
		p.tests[e.Test] = t
		p.order = append(p.order, e.Test)
	}
	switch e.Action {
	case "output":
		t.lines = append(t.lines, e.Output)
	case "pass", "skip", "fail":
		t.result = e.Action
		if e.Test == "" {
			p.failed = e.Action == "fail"
			return true
		}
	}
	return false
}

// print prints the output of the package outside of its tests. If the package failed, print also prints the output
// of the tests that failed or did not end. A subtest stands below its test, even if tests ran in parallel.
func (p *packageLog) print(w io.Writer) {
	first := make(map[string]int)
	for i, name := range p.order {
		if _, known := first[parent(name)]; !known {
			first[parent(name)] = i
		}
	}
	slices.SortStableFunc(p.order, func(a, b string) int { return cmp.Compare(first[parent(a)], first[parent(b)]) })
	for _, name := range p.order {
		t := p.tests[name]
		if !p.failed || name == "" || t.result == "pass" || t.result == "skip" {
			continue
		}
		// go test prints the verdict of a test above its output.
		for _, verdict := range []bool{true, false} {
			for _, line := range t.lines {
				if isVerdict(line) == verdict && !isProgress(line) {
					_, _ = io.WriteString(w, line)
				}
			}
		}
	}
	if own := p.tests[""]; own != nil {
		for _, line := range own.lines {
			if line != "PASS\n" && !isProgress(line) {
				_, _ = io.WriteString(w, line)
			}
		}
	}
}

// parent returns the test that a subtest belongs to, or the test itself.
func parent(name string) string {
	top, _, _ := strings.Cut(name, "/")
	return top
}

func isVerdict(line string) bool { return strings.HasPrefix(strings.TrimLeft(line, " "), "--- FAIL: ") }

// isProgress reports whether go test prints the line only with -v.
func isProgress(line string) bool {
	for _, word := range []string{"RUN", "PAUSE", "CONT", "NAME"} {
		if strings.HasPrefix(line, "=== "+word+" ") {
			return true
		}
	}
	return false
}

// reason returns the message of a skipped test.
func reason(lines []string) string {
	var said []string
	for _, line := range lines {
		if trimmed := strings.TrimSpace(line); !isProgress(line) && !strings.HasPrefix(trimmed, "--- SKIP: ") && trimmed != "" {
			said = append(said, trimmed)
		}
	}
	if len(said) == 0 {
		return "no reason given"
	}
	return strings.Join(said, " ")
}
