package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/tools/txtar"

	"xdspub/check"
	"xdspub/diag"
	"xdspub/render"
	"xdspub/render/planner"
	"xdspub/render/publish"
	"xdspub/tools/certs"
	"xdspub/validate/transition"
	"xdspub/watch/pipeline"
)

var wanted = regexp.MustCompile(` # want .*`)

// writeChange writes the first bad change of a transition rule: the published tree, the new tree, and the
// output. Other codes have no such change.
func writeChange(b *bytes.Buffer, root string, code diag.Code) error {
	archive, err := txtar.ParseFile(filepath.Join(root, "validate", "transition", "testdata", code.Name+".txtar"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "rulesdoc-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	const first = "bad/"
	for _, f := range archive.Files {
		name, ok := strings.CutPrefix(f.Name, first)
		if !ok || name == "envoy" || name == "want" {
			continue
		}
		shown := wanted.ReplaceAll(f.Data, nil)
		text, err := certs.Expand(shown)
		if err != nil {
			return err
		}
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
		what := "that comes"
		if strings.HasPrefix(name, "old/") {
			what = "that is published"
		}
		fmt.Fprintf(b, "\n`%s`, %s\n\n```yaml\n%s```\n", name, what, certs.Show(shown))
	}
	if err := publishTree(dir, "old"); err != nil {
		return err
	}
	p, checked, err := checkTree(dir, "new")
	if err != nil {
		return err
	}
	p.Guard(&transition.Guard{MaxRemoval: 50})
	_, list, err := p.Plan(context.Background(), checked.Snapshot, certs.Now)
	if err != nil {
		return err
	}
	text := list.Text(0, diag.TextOptions{Line: checked.Line})
	fmt.Fprintf(b, "\n```\n%s```\n", strings.ReplaceAll(text, dir+string(filepath.Separator), ""))
	return nil
}

// publishTree publishes one of the trees below dir.
func publishTree(dir, tree string) error {
	p, checked, err := checkTree(dir, tree)
	if err != nil {
		return err
	}
	plan, list, err := p.Plan(context.Background(), checked.Snapshot, certs.Now)
	if err != nil || plan == nil {
		return errors.Join(err, fmt.Errorf("no plan: %v", list))
	}
	out, err := publish.Open(filepath.Join(dir, "out"), publish.Options{})
	if err != nil {
		return err
	}
	_, err = p.Publish(context.Background(), out, plan)
	return errors.Join(err, out.Close())
}

func checkTree(dir, tree string) (*pipeline.Pipeline, *check.Result, error) {
	o := pipeline.Options{
		Source: check.Options{Path: filepath.Join(dir, tree)}, Out: filepath.Join(dir, "out"), Format: render.JSON,
		Endpoints: planner.EndpointsAuto, InotifyBudget: 120,
	}
	p := pipeline.New(o)
	checked, err := check.New(o.Source).Check(context.Background())
	if err == nil && !checked.Accepted() {
		err = fmt.Errorf("%s is not valid: %v", tree, checked.Diagnostics)
	}
	return p, checked, err
}
