// Gotest runs go test and prints its output. It also records what go test does not print: the skipped tests, and
// the time of each package.
//
//	gotest run EVENTS ARGUMENT…	go test with these arguments; its events go to the file EVENTS
//	gotest sum ALLOWED EVENTS…	what all runs together skipped, and how long they took
//
// A test that passes in one run was tested, even if another run skipped it. With CI=true, sum fails if all runs
// skipped a test that ALLOWED does not name.
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: gotest run EVENTS ARGUMENT… | gotest sum ALLOWED EVENTS…")
		os.Exit(2)
	}
	var status int
	var err error
	switch os.Args[1] {
	case "run":
		status, err = run(os.Args[2], os.Args[3:], os.Stdout)
	case "sum":
		status, err = sum(os.Args[2], os.Args[3:], os.Stdout, os.Getenv("CI") == "true")
	default:
		err = fmt.Errorf("%q is neither run nor sum", os.Args[1])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
		os.Exit(2)
	}
	os.Exit(status)
}
