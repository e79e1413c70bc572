package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"xdspub/bootstrap"
	"xdspub/bootstrap/trial"
	"xdspub/clients"
	"xdspub/confirm"
	"xdspub/diag"
	"xdspub/diff"
	"xdspub/follow"
	"xdspub/grpcboot"
	"xdspub/importer"
	"xdspub/oracle"
	"xdspub/pipeline"
	"xdspub/planner"
)

// family is the codes of one page.
type family struct {
	name  string // of the page, without its suffix
	about string // what the codes are about, as the end of a sentence
	codes []diag.Code
}

// heading is the title of the page.
func (f *family) heading() string { return "Rules about " + f.about }

var packageComment = regexp.MustCompile(`(?m)^// Package [a-z]+ holds the rules about (.*)\.$`)

// families returns all codes, each in one family: first those that are met while a tree
// or the files of a bootstrap are read, then the validation rules, a family for each of
// their folders, then those about a change and about its publication.
func families(root string) ([]*family, error) {
	reading := &family{name: "reading", about: "reading files: syntax, documents, fields and values"}
	following := &family{name: "following", about: "the files that a bootstrap leads to"}
	change := &family{name: "change", about: "changes that a running Envoy can't make"}
	publishing := &family{name: "publishing", about: "publishing: formats, inotify limits, refusals by Envoy"}
	validation, err := validationFamilies(root)
	if err != nil {
		return nil, err
	}
	for _, c := range pipeline.Codes() {
		is := func(other diag.Code) bool { return other.Name == c.Name }
		f := reading
		switch i := slices.IndexFunc(validation, func(f *family) bool { return exists(root, f.name, c.Name) }); {
		case i >= 0:
			f = validation[i]
		case slices.ContainsFunc(follow.Codes, is), slices.ContainsFunc(bootstrap.Codes, is), slices.ContainsFunc(trial.Codes, is), slices.ContainsFunc(importer.Codes, is):
			f = following
		case slices.ContainsFunc(grpcboot.Codes, is):
			f = validation[slices.IndexFunc(validation, func(f *family) bool { return f.name == "grpc" })]
		case slices.ContainsFunc(diff.Rules, func(r *diff.Rule) bool { return r.Code == c.Name }):
			f = change
		case slices.ContainsFunc(planner.Codes(), is), slices.ContainsFunc(confirm.Codes, is), slices.ContainsFunc(clients.Codes, is), slices.ContainsFunc(oracle.Codes, is):
			f = publishing
		}
		f.codes = append(f.codes, c)
	}
	return slices.Concat([]*family{reading, following}, validation, []*family{change, publishing}), nil
}

// validationFamilies returns the families of validation rules, as yet without codes.
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

// exists reports whether a family has test cases of a rule.
func exists(root, family, code string) bool {
	_, err := os.Stat(filepath.Join(root, "validate", "rules", family, "testdata", code+".txtar"))
	return err == nil
}

// link returns a link to what stands on a page about a code.
func (f *family) link(code string) string {
	return fmt.Sprintf("[%s](%s.md#%s)", code, f.name, strings.ToLower(code))
}
