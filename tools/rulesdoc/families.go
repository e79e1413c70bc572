package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"xdspub/cmd/codes"
	"xdspub/diag"
)

// family has the codes of one page.
type family struct {
	name  string // of the page, without its suffix
	about string // what the codes are about, as the end of a sentence
	codes []diag.Code
}

// heading is the title of the page.
func (f *family) heading() string { return "Rules about " + f.about }

var packageComment = regexp.MustCompile(`(?m)^// Package [a-z]+ holds the rules about (.*)\.$`)

// families returns all codes, each in one family: first the codes of reading a tree and the files of a bootstrap,
// then the validation rules, with a family for each folder, then the codes about a change, its publication and the
// machine.
func families(root string) ([]*family, error) {
	reading := &family{name: "reading", about: "reading files: syntax, documents, fields and values"}
	following := &family{name: "following", about: "the files that a bootstrap leads to"}
	change := &family{name: "change", about: "changes that a running Envoy can't make"}
	guard := &family{name: "guard", about: "changes that remove too much"}
	publishing := &family{name: "publishing", about: "publishing: formats, inotify limits, refusals by Envoy"}
	machine := &family{name: "machine", about: "the machine: what xdspub doctor finds"}
	validation, err := validationFamilies(root)
	if err != nil {
		return nil, err
	}
	list := slices.Concat([]*family{reading, following}, validation, []*family{change, guard, publishing, machine})
	for _, c := range codes.All() {
		i := slices.IndexFunc(list, func(f *family) bool { return f.name == c.Family })
		if i < 0 {
			return nil, fmt.Errorf("%s is of the family %q, which has no page", c.Name, c.Family)
		}
		list[i].codes = append(list[i].codes, c)
	}
	return list, nil
}

// validationFamilies returns the families of validation rules, without codes.
func validationFamilies(root string) (list []*family, err error) {
	files, err := filepath.Glob(filepath.Join(root, "validate", "rules", "*", "rules.go"))
	if err == nil && len(files) == 0 {
		err = errors.New("there are no families of rules")
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		m := packageComment.FindSubmatch(text)
		if m == nil {
			return nil, fmt.Errorf("%s: the comment of the package does not say what its rules are about", file)
		}
		list = append(list, &family{name: filepath.Base(filepath.Dir(file)), about: string(m[1])})
	}
	return list, err
}

// link returns a link to the section of a code on the page.
func (f *family) link(code string) string {
	return fmt.Sprintf("[%s](%s.md#%s)", code, f.name, strings.ToLower(code))
}
