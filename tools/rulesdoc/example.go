package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"golang.org/x/tools/txtar"

	"xdspub/diag"
	"xdspub/envoy/envoyapi"
	"xdspub/source/follow"
	"xdspub/source/load"
	"xdspub/tools/certs"
	"xdspub/validate"
	"xdspub/validate/rules"
	"xdspub/xds"
)

// example is a source tree in which a rule finds something.
type example struct {
	code  diag.Code
	envoy *envoyapi.Version // nil means the latest
	files []*file           // of the tree, and bootstrap.yaml, which has the static resources of the Envoy
	// all are the findings on the whole tree, shown the finding that the example shows.
	all   diag.List
	shown diag.Diagnostic
}

// file is a file of an example: YAML, which rulesdoc can shorten, or another text.
type file struct {
	name string
	yaml *yaml.Node
	text []byte
	// made has the references to certificates and keys (package certs), by the word that stands for each in yaml.
	made map[string]string
}

// exampleOf returns the first bad tree of a rule's test cases, shortened to the parts that its first finding needs;
// nil if the code has no test cases.
func exampleOf(root string, code diag.Code) (*example, error) {
	paths, err := filepath.Glob(filepath.Join(root, "validate", "rules", "*", "testdata", code.Name+".txtar"))
	if err != nil || len(paths) == 0 {
		return nil, err
	}
	archive, err := txtar.ParseFile(paths[0])
	if err != nil {
		return nil, err
	}
	e := &example{code: code}
	if name, ok := strings.CutPrefix(string(archive.Comment), "envoy-version: "); ok {
		e.envoy = envoyapi.Named(strings.TrimSpace(name))
	}
	tree := ""
	for _, f := range archive.Files {
		top, name, _ := strings.Cut(f.Name, "/")
		if tree == "" && strings.HasPrefix(top, "bad") {
			tree = top
		}
		if f.Name == bootstrapFile || tree != "" && top == tree {
			parsed, err := parse(cmp.Or(name, f.Name), f.Data)
			if err != nil {
				return nil, err
			}
			e.files = append(e.files, parsed)
		}
	}
	return e, e.shorten()
}

const bootstrapFile = "bootstrap.yaml"

var made = regexp.MustCompile(`\{\{[^}]*\}\}`)

// parse reads a file, without the comments of YAML, which are for the test.
func parse(name string, text []byte) (*file, error) {
	f := &file{name: name, text: text}
	if filepath.Ext(name) != ".yaml" {
		return f, nil
	}
	f.made = make(map[string]string)
	text = made.ReplaceAllFunc(text, func(reference []byte) []byte {
		word := fmt.Sprintf("Made%dHere", len(f.made))
		f.made[word] = string(reference)
		return []byte(word)
	})
	var n yaml.Node
	if err := yaml.Unmarshal(text, &n); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	f.yaml = plain(&n)
	return f, nil
}

// plain returns a copy without comments and anchors. A copy of the anchored node takes the place of each alias.
func plain(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	p := *n
	p.Anchor, p.HeadComment, p.LineComment, p.FootComment = "", "", "", ""
	p.Content = nil
	for _, c := range n.Content {
		p.Content = append(p.Content, plain(c))
	}
	return &p
}

// source returns the text of a file, with the references of made.
func (f *file) source() ([]byte, error) {
	if f.yaml == nil {
		return f.text, nil
	}
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	enc.CompactSeqIndent()
	if err := enc.Encode(f.yaml); err != nil {
		return nil, err
	}
	text := b.String()
	for word, reference := range f.made {
		text = strings.ReplaceAll(text, word, reference)
	}
	return []byte(text), nil
}

// shorten removes the parts of the example that the finding does not need: files, then items of lists and fields,
// the last ones first.
func (e *example) shorten() error {
	var err error
	if e.all, _, err = e.judge(); err != nil {
		return err
	}
	for _, d := range slices.Backward(e.all) {
		if diag.CodeOf(d.Code) == e.code.Name && (d.Severity == e.code.Severity || e.shown.Code == "" || e.shown.Severity != e.code.Severity) {
			e.shown = d
		}
	}
	if e.shown.Code == "" {
		return errors.New("the first bad tree gives no finding")
	}
	for i := len(e.files) - 1; i >= 0; i-- {
		all := e.files
		e.files = slices.Delete(slices.Clone(all), i, i+1)
		if still, err := e.still(); err != nil {
			return err
		} else if !still {
			e.files = all
		}
	}
	for _, f := range e.files {
		if f.yaml != nil {
			if err := e.prune(f.yaml); err != nil {
				return err
			}
		}
	}
	return nil
}

// prune removes the parts of a node that the finding does not need.
func (e *example) prune(n *yaml.Node) error {
	entry := 1
	if n.Kind == yaml.MappingNode {
		entry = 2
	}
	for i := len(n.Content) - entry; i >= 0; i -= entry {
		if n.Kind != yaml.DocumentNode && !isVariantName(n, i) {
			all := n.Content
			n.Content = slices.Delete(slices.Clone(all), i, i+entry)
			if still, err := e.still(); err != nil {
				return err
			} else if still {
				continue
			}
			n.Content = all
		}
		if err := e.prune(n.Content[i+entry-1]); err != nil {
			return err
		}
	}
	return nil
}

// isVariantName reports whether an entry is the name beside the constraints of a variant. prune keeps such a name:
// no rule needs it, but people write it.
func isVariantName(n *yaml.Node, i int) bool {
	return n.Kind == yaml.MappingNode && n.Content[i].Value == "name" &&
		slices.ContainsFunc(n.Content, func(c *yaml.Node) bool { return c.Value == "dynamic_parameter_constraints" })
}

// still reports whether the tree still has the finding, and has no new finding.
func (e *example) still() (bool, error) {
	list, _, err := e.judge()
	if err != nil {
		return false, err
	}
	is := func(d diag.Diagnostic) func(diag.Diagnostic) bool {
		return func(other diag.Diagnostic) bool {
			return d.Code == other.Code && d.Severity == other.Severity && d.Message == other.Message
		}
	}
	for _, d := range list {
		if !slices.ContainsFunc(e.all, is(d)) {
			return false, nil
		}
	}
	return slices.ContainsFunc(list, is(e.shown)), nil
}

// judge validates the tree; said is the printed output.
func (e *example) judge() (list diag.List, said string, err error) {
	dir, err := os.MkdirTemp("", "rulesdoc-")
	if err != nil {
		return nil, "", err
	}
	defer os.RemoveAll(dir)
	tree := filepath.Join(dir, "tree")
	if err := os.Mkdir(tree, 0o755); err != nil {
		return nil, "", err
	}
	o := validate.Options{Envoy: e.envoy, Now: certs.Now, Enable: []string{e.code.Name}}
	for _, r := range rules.All {
		if r.Code == e.code.Name {
			o.Profiles, o.Variants = r.Profiles[:min(1, len(r.Profiles))], r.OfVariants
		}
	}
	for _, f := range e.files {
		text, err := f.source()
		if err != nil {
			return nil, "", err
		}
		if text, err = certs.Expand(text); err != nil {
			return nil, "", err
		}
		path := filepath.Join(tree, f.name)
		if f.name == bootstrapFile {
			path = filepath.Join(dir, f.name)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, "", err
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return nil, "", err
		}
		if f.name == bootstrapFile {
			b, _, err := load.Bootstrap(path, nil)
			if err != nil || b == nil {
				return nil, "", err
			}
			o.BootstrapFacts = xds.BootstrapFactsOf(b)
		}
	}
	result, err := load.New(load.Options{Owners: []string{"teams/*"}}).Load(context.Background(), tree)
	if err != nil {
		return nil, "", err
	}
	list, line, snapshot := result.Diagnostics, result.Line, result.Snapshot()
	boot := filepath.Join(tree, "boot.yaml") // what Envoy starts with
	if _, err := os.Stat(boot); err == nil {
		followed, err := follow.Bootstrap(context.Background(), boot, follow.Options{Root: tree, Disable: []string{"missing-path"}})
		if err != nil {
			return nil, "", err
		}
		o.Bootstrap, o.BootstrapFacts, snapshot = followed.Bootstrap, followed.BootstrapFacts, followed.Snapshot
		list, line = followed.Diagnostics, followed.Line
	}
	list = append(list, validate.Run(context.Background(), snapshot, rules.All, o)...).Sort()
	return list, strings.ReplaceAll(list.Text(0, diag.TextOptions{Line: line}), tree+string(filepath.Separator), ""), nil
}

// write writes the files of the example and the output of xdspub for the page.
func (e *example) write(b *bytes.Buffer) error {
	for _, f := range e.files {
		text, err := f.source()
		if err != nil {
			return err
		}
		of := ""
		if f.name == bootstrapFile {
			of = ", which the Envoy has"
		}
		fmt.Fprintf(b, "\n`%s`%s\n\n```yaml\n%s```\n", f.name, of, certs.Show(text))
	}
	_, said, err := e.judge()
	fmt.Fprintf(b, "\n```\n%s```\n", said)
	return err
}
