//go:build !linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

func condition(name string) (bool, error) {
	switch name {
	case "unprivileged":
		return os.Geteuid() != 0, nil
	case "mounts":
		return false, nil
	}
	return false, fmt.Errorf("unknown condition %q", name)
}

func unprivileged() {
	name, err := exec.LookPath(os.Args[1])
	if err == nil {
		err = syscall.Exec(name, os.Args[1:], os.Environ())
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func mounted() { os.Exit(1) }
