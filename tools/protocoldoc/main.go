// Command protocoldoc writes docs/protocol.md: the sentences of the xDS protocol about a server (sentences.txt),
// each with the tests that show that xdspub keeps it.
package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

//go:generate go run . ../..

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: protocoldoc ROOT")
		os.Exit(2)
	}
	text, err := generate(os.Args[1])
	if err == nil {
		err = os.WriteFile(page(os.Args[1]), text, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "protocoldoc:", err)
		os.Exit(1)
	}
}

func page(root string) string { return filepath.Join(root, "docs", "protocol.md") }

//go:embed sentences.txt
var sentences string

// scripts is the folder of the scripts that serve.TestProtocol plays.
const scripts = "serve/testdata/protocol"

// section is a section of the protocol's description.
type section struct {
	title string
	list  []*sentence
}

// sentence is a sentence of the protocol's description, reworded.
type sentence struct {
	id, text string
	// ofClients means that the sentence is about clients only, and needs no test.
	ofClients bool
	// tests are tests of Go as folder.Test, scripts the names of scripts.
	tests, scripts []string
}

// read returns the sections of sentences.txt. It adds to each sentence the scripts below root that name the sentence.
func read(root string) ([]section, error) {
	sections, err := parse(sentences)
	if err != nil {
		return nil, err
	}
	byID := make(map[string]*sentence)
	for _, s := range sections {
		for _, x := range s.list {
			if byID[x.id] != nil {
				return nil, fmt.Errorf("two sentences are %s", x.id)
			}
			byID[x.id] = x
		}
	}
	files, err := filepath.Glob(filepath.Join(root, scripts, "*.txt"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		first, _, _ := strings.Cut(string(text), "\n")
		ids, ok := strings.CutPrefix(first, "# Shows: ")
		if !ok {
			return nil, fmt.Errorf("%s does not begin with what it shows", file)
		}
		for _, id := range strings.Fields(ids) {
			if byID[id] == nil {
				return nil, fmt.Errorf("%s shows %s, which is no sentence", file, id)
			}
			byID[id].scripts = append(byID[id].scripts, strings.TrimSuffix(filepath.Base(file), ".txt"))
		}
	}
	return sections, nil
}

// parse reads sentences.txt.
func parse(text string) (sections []section, err error) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if title, ok := strings.CutPrefix(line, "== "); ok {
			sections = append(sections, section{title: title})
			continue
		}
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		head, words, ok := strings.Cut(line, ": ")
		if !ok || len(sections) == 0 {
			return nil, fmt.Errorf("no sentence: %s", line)
		}
		x := &sentence{text: words, tests: strings.Fields(head)}
		x.id, x.tests = x.tests[0], x.tests[1:]
		if id, ok := strings.CutPrefix(x.id, "("); ok {
			x.id, x.ofClients = strings.TrimSuffix(id, ")"), true
		}
		last := &sections[len(sections)-1]
		last.list = append(last.list, x)
	}
	return sections, nil
}

const intro = `# The xDS protocol, sentence by sentence

<!-- Made by go generate ./tools/protocoldoc; a test compares. Edit tools/protocoldoc/sentences.txt and the scripts instead. -->

For people who write or debug a client of ` + "`xdspub serve`" + `. After this page you know how the server behaves in
each situation, and which test shows that.

The page restates the [description of the protocol](https://www.envoyproxy.io/docs/envoy/latest/api-docs/xds_protocol)
section by section. Each sentence names the scripts and tests that show it. A script is a dialogue of clients and a
server over gRPC, with the requests of each client and the expected responses; ` + "`serve.TestProtocol`" + ` plays the
scripts. Sentences in italics are about clients alone. [The architecture](architecture.md#what-the-library-does-not-do)
lists the sentences that go-control-plane's servers break, and our remedies. The last sections restate
[xRFC TP2](https://github.com/cncf/xds/blob/main/proposals/TP2-dynamically-generated-cacheable-xds-resources.md), the
subject of [dynamic-parameters.md](dynamic-parameters.md).
`

// generate returns the text of docs/protocol.md for the repository at root.
func generate(root string) ([]byte, error) {
	sections, err := read(root)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString(intro)
	for _, s := range sections {
		fmt.Fprintf(&b, "\n## %s\n\n| | shown by |\n|---|---|\n", s.title)
		for _, x := range s.list {
			text := strings.ReplaceAll(x.text, "*", `\*`) // the name *
			if x.ofClients {
				text = "*" + text + "*"
			}
			fmt.Fprintf(&b, "| %s | %s |\n", text, strings.Join(x.links(), ", "))
		}
	}
	return b.Bytes(), nil
}

// links returns links to the scripts and tests of a sentence.
func (x *sentence) links() (links []string) {
	for _, s := range slices.Sorted(slices.Values(x.scripts)) {
		links = append(links, fmt.Sprintf("[`%s`](../%s)", s, path.Join(scripts, s+".txt")))
	}
	for _, t := range x.tests {
		links = append(links, "`"+t+"`")
	}
	return links
}
