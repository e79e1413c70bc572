package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
)

// module is the path of this module.
const module = "xdspub/"

// pkg is a package of this module, as go list tells it.
type pkg struct {
	Dir          string
	Name         string
	ImportPath   string
	Doc          string
	Imports      []string
	GoFiles      []string
	TestGoFiles  []string
	XTestGoFiles []string
}

// packages lists all packages of this module.
func packages() ([]pkg, error) {
	out, err := exec.Command("go", "list", "-json=Dir,Name,ImportPath,Doc,Imports,GoFiles,TestGoFiles,XTestGoFiles", module+"...").Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var list []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
}
