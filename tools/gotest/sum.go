package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

// test names a test: a package and the name that go test -run takes.
type test struct{ pkg, name string }

func (t test) String() string { return t.pkg + " " + t.name }

// summary is the result of several runs.
type summary struct {
	took   map[string]float64
	tested map[test]bool
	skips  map[test]string // the reason of each
}

// sum prints the time of each package, and the tests that all runs skipped. The status is 1 if the file of allowed
// skips names no existing test, or if ci is true and a skip is not allowed.
func sum(allowed string, events []string, w io.Writer, ci bool) (status int, err error) {
	s := summary{took: make(map[string]float64), tested: make(map[test]bool), skips: make(map[test]string)}
	for _, name := range events {
		if err := s.read(name); err != nil {
			return 0, err
		}
	}
	list, err := readAllowed(allowed)
	if err != nil {
		return 0, err
	}
	fmt.Fprintln(w, "\nHow long the packages took:")
	for _, pkg := range slices.SortedFunc(maps.Keys(s.took), func(a, b string) int {
		return cmp.Or(cmp.Compare(s.took[b], s.took[a]), cmp.Compare(a, b))
	}) {
		fmt.Fprintf(w, "%8.1f s  %s\n", s.took[pkg], pkg)
	}
	skipped := slices.SortedFunc(maps.Keys(s.skips), func(a, b test) int { return cmp.Compare(a.String(), b.String()) })
	if len(skipped) > 0 {
		fmt.Fprintln(w, "\nNOT TESTED:")
	}
	for _, t := range skipped {
		fmt.Fprintf(w, "%s: %s\n", t, s.skips[t])
		if ci && !list[t] {
			fmt.Fprintf(w, "\tin CI this test must run; if it cannot, name it in %s\n", allowed)
			status = 1
		}
	}
	for _, t := range slices.SortedFunc(maps.Keys(list), func(a, b test) int { return cmp.Compare(a.String(), b.String()) }) {
		if _, skipped := s.skips[t]; s.ran(t.pkg) && !s.tested[t] && !skipped {
			fmt.Fprintf(w, "%s: there is no such test; remove it from %s\n", t, allowed)
			status = 1
		}
	}
	return status, nil
}

func (s *summary) ran(pkg string) bool { _, ok := s.took[pkg]; return ok }

// read adds the events of one run.
func (s *summary) read(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	said := make(map[test][]string)
	for lines := bufio.NewReader(file); ; {
		line, err := lines.ReadString('\n')
		var e event
		if json.Unmarshal([]byte(line), &e) == nil && e.Package != "" {
			s.add(e, said)
		}
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
	}
	for t := range s.skips {
		if s.tested[t] {
			delete(s.skips, t)
		}
	}
	return nil
}

func (s *summary) add(e event, said map[test][]string) {
	t := test{e.Package, e.Test}
	switch {
	case e.Test == "":
		if e.Action == "pass" || e.Action == "fail" {
			s.took[e.Package] += e.Elapsed
		}
	case e.Action == "output":
		said[t] = append(said[t], e.Output)
	case e.Action == "pass" || e.Action == "fail":
		s.tested[t] = true
	case e.Action == "skip":
		s.skips[t] = reason(said[t])
	}
}

// readAllowed reads the tests that CI may skip. A line is a package, a test, and the condition under which the test
// can't run.
func readAllowed(name string) (map[test]bool, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	list := make(map[test]bool)
	n := 0
	for line := range strings.Lines(string(data)) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		words := strings.Fields(line)
		if len(words) < 3 {
			return nil, fmt.Errorf("%s:%d: not a package, a test and a reason: %s", name, n, line)
		}
		list[test{words[0], words[1]}] = true
	}
	return list, nil
}
