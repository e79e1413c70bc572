package links

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// bounds has constants, each with a text of docs/evidence/bounds.md, in which %s stands for the value.
var bounds = map[string]string{
	"envoy/trial.goodbye":            "after %s SIGKILL",
	"envoy/trial.maxOutput":          "%s of output. It gets the bootstrap",
	"envoy/trial.patience":           "`--mode validate`: %s, then SIGTERM",
	"xds/clients.MostNames":          "lists %s names",
	"diag.MaxText":                   "says of a rejection: %s",
	"envoy.dumpTimeout":              "within %s, and has",
	"envoy.maxConfigDump":            "and has %s",
	"setup/grpcboot.maxBytes":        "bootstrap of gRPC: %s",
	"setup/grpcboot.maxDepth":        "%s levels of lists",
	"setup/grpcboot.maxFindings":     "%[1]s errors and %[1]s warnings about it",
	"setup/importer.maxCommented":    "comments of a YAML file of %s",
	"setup/importer.maxNodes":        "%s values",
	"source/syntax.MaxBytes":         "--from`: %s",
	"check/oracle.longestTime":       "resources, %s. |",
	"check/oracle.mostFaults":        "Envoy refuses: %s resources",
	"source/load.maxDescriptorSets":  "Descriptor sets: %s together",
	"source/load.maxDeclared":        "in a chain, %s declarations",
	"xds.maxFiles":                   "together, %s files",
	"xds.maxImports":                 "files, %s files that import",
	"xds.maxNested":                  "declarations and %s messages",
	"serve/admit.logAgain":           "once in %s",
	"serve/admit.maxLogged":          "Refusals of %s hosts",
	"xds/params.MaxText":             "key or value of %s bytes",
	"serve/admit.mostParameters":     "A locator has %s dynamic parameters",
	"serve/cache.MostClasses":        "tell %s kinds of clients apart",
	"serve/cache.mostSets":           "a stream has %s sets of them",
	"serve/admit.maxNode":            "the node of a client has %s",
	"serve/admit.maxTypes":           "ask for %s types",
	"serve/cache.goneFor":            ", for %s. NACKs",
	"serve/cache.mostBlamed":         "%s resources have a finding",
	"serve/cache.mostFindings":       "there are %s findings",
	"serve/cache.mostDetails":        "All clients have %s",
	"serve/cache.mostGone":           "Clients that are gone: %s",
	"serve/cache.mostGoneBytes":      "with %s of text, for",
	"serve/cache.mostNameBytes":      "%s of names",
	"serve/cache.mostPolled":         "%s questions are known",
	"serve/cache.mostPolledBytes":    "of all %s of text",
	"serve/cache.mostPolledOfClient": "are known, and %s of one client",
	"serve/cache.mostRejecting":      "the last %s nodes",
	"serve/cache.mostWarmed":         "is sent %s responses",
	"serve/cache.patience":           "acknowledgement for %s",
	"serve/cache.pauseOfSame":        "again after %s",
	"serve/cache.shortestBeat":       "than each %s",
	"serve/cache.silentFor":          "not asked for %s counts",
	"serve/csds.maxAnswer":           "an answer of %s",
	"internal/grpcdial.maxFile":      "certificates of %s",
	"store.maxHead":                  "A head or a step has %s",
	"store.maxAck":                   "an acknowledgement %s",
	"store.maxHeader":                "Its header has %s",
	"store.maxKeyFile":               "a file of age keys has %s",
	"serve/csds.mostAnswers":         "CSDS: %s requests",
	"serve/listen.maxFile":           "file of certificates: %s",
	"serve/listen.readAgain":         "again once in %s",
	"serve/rest.largest":             "a request of %s",
	"serve/memory.Default":           "`--max-client-memory`, %s",
	"serve/rest.slowest":             "has %s to take in",
}

// TestBounds: docs/evidence/bounds.md has the values of the constants.
func TestBounds(t *testing.T) {
	doc := read(t, "docs/evidence/bounds.md")
	for name, text := range bounds {
		pkg, constant, _ := strings.Cut(name, ".")
		value := written(t, declared(t, pkg, constant))
		if want := fmt.Sprintf(text, value); !strings.Contains(doc, want) {
			t.Errorf("docs/evidence/bounds.md does not say %q, as %s does", want, name)
		}
	}
}

// declared returns the expression of a constant of a package.
func declared(t *testing.T, pkg, name string) string {
	t.Helper()
	sources, err := filepath.Glob(filepath.Join(root, pkg, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range sources {
		file, err := parser.ParseFile(token.NewFileSet(), source, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(source, "_test.go") {
			continue
		}
		for _, d := range file.Decls {
			group, ok := d.(*ast.GenDecl)
			if !ok || group.Tok != token.CONST {
				continue
			}
			for _, spec := range group.Specs {
				if c := spec.(*ast.ValueSpec); c.Names[0].Name == name && len(c.Values) == 1 {
					return types.ExprString(c.Values[0])
				}
			}
		}
	}
	t.Fatalf("%s has no constant %s", pkg, name)
	return ""
}

// written returns the value of a constant as pages write it: 10,000, 4 MiB, 30 s.
func written(t *testing.T, expression string) string {
	t.Helper()
	units := strings.NewReplacer("time.Millisecond", "1000000", "time.Second", "1000000000", "time.Minute", "60000000000", "time.Hour", "3600000000000")
	value, err := types.Eval(token.NewFileSet(), nil, token.NoPos, units.Replace(expression))
	if err != nil {
		t.Fatal(err)
	}
	n, _ := constant.Int64Val(value.Value)
	switch {
	case strings.Contains(expression, "time."):
		return ofTime(time.Duration(n))
	case strings.Contains(expression, "<<") && n%(1<<20) == 0:
		return fmt.Sprint(n>>20, " MiB")
	case strings.Contains(expression, "<<"):
		return fmt.Sprint(n>>10, " KiB")
	case n >= 1_000_000:
		return fmt.Sprintf("%d,%03d,%03d", n/1_000_000, n/1000%1000, n%1000)
	case n >= 1000:
		return fmt.Sprintf("%d,%03d", n/1000, n%1000)
	default:
		return strconv.FormatInt(n, 10)
	}
}

func ofTime(d time.Duration) string {
	switch {
	case d%time.Hour == 0:
		return fmt.Sprint(int(d/time.Hour), " h")
	case d%time.Minute == 0:
		return fmt.Sprint(int(d/time.Minute), " min")
	case d%time.Second == 0:
		return fmt.Sprint(int(d/time.Second), " s")
	default:
		return fmt.Sprint(d.Milliseconds(), " ms")
	}
}
