package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"xdspub/tools/envoytest"
)

// page returns a file of the documentation.
func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// blocks returns the code blocks of a page in one language.
func blocks(text, language string) []string {
	var found []string
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	return found
}

// TestContributing runs the commands of CONTRIBUTING.md. It runs make with --dry-run, and checks only that the
// tests of go test exist, since both may be running this test.
func TestContributing(t *testing.T) {
	envoytest.Binary(t)
	t.Parallel()
	text := page(t, "CONTRIBUTING.md")
	try := filepath.Join(t.TempDir(), "envoy.yaml")
	if err := os.WriteFile(try, []byte(blocks(text, "yaml")[0]), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, block := range blocks(text, "console") {
		for _, c := range regexp.MustCompile(`(?m)^\$ `).Split(block, -1) {
			command, want, _ := strings.Cut(strings.ReplaceAll(c, "envoy.yaml", try), "\n")
			words := strings.Fields(command)
			switch {
			case command == "":
				continue
			case words[0] == "make":
				command = "make --dry-run " + strings.Join(words[1:], " ")
			case words[0] == "go" && words[1] == "test":
				checkTests(t, command)
				continue
			case words[0] == "go" && words[1] == "generate":
				command = "go generate -n " + strings.Join(words[2:], " ")
			}
			stdout, stderr, exit := run(t, "/bin/sh", "-c", command)
			if exit != 0 || want != "" && stdout != want {
				t.Errorf("%s: exit status %d, want 0 and %q\n%s%s", command, exit, want, stdout, stderr)
			}
		}
	}
	for _, m := range regexp.MustCompile("`(go test [.][^`]+)`").FindAllStringSubmatch(text, -1) {
		checkTests(t, m[1])
	}
	files, err := filepath.Glob(filepath.Join(root, "tools/envoytest/*.go"))
	if err != nil || files == nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func ([A-Z]\w*)`).FindAllStringSubmatch(string(code), -1) {
			if !strings.Contains(text, "`"+m[1]+"`") {
				t.Errorf("CONTRIBUTING.md does not say what envoytest.%s does", m[1])
			}
		}
	}
}

// checkTests fails the test unless the package of a go test command has the tests that the command names. It reads
// the source, because go test -list would link the tests of each package.
func checkTests(t *testing.T, command string) {
	t.Helper()
	m := regexp.MustCompile(`^go test \./(\S+) -run '?([\w|]+)(?:/\w+)?'?( -update)?$`).FindStringSubmatch(command)
	if m == nil {
		t.Errorf("%s: not a package and tests", command)
		return
	}
	files, err := filepath.Glob(filepath.Join(root, m[1], "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		code.Write(data)
	}
	for name := range strings.SplitSeq(m[2], "|") {
		if !strings.Contains(code.String(), "\nfunc "+name+"(t *testing.T)") {
			t.Errorf("%s: there is no %s", command, name)
		}
	}
}

// TestSettingsExample: the first settings file that docs/source-tree.md shows works.
func TestSettingsExample(t *testing.T) {
	e := newExample(t, "quickstart")
	bootstrap := filepath.Join(t.TempDir(), "envoy.yaml")
	if err := os.WriteFile(bootstrap, []byte("static_resources: {clusters: [{name: in-the-bootstrap}]}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	examples := blocks(page(t, "docs/source-tree.md"), "yaml")
	if len(examples) == 0 {
		t.Fatal("no example")
	}
	envoytest.Publish(t, filepath.Join(e.dir, "xdspub.yaml"), examples[0])
	envoytest.Publish(t, filepath.Join(e.dir, "kustomization.yaml"), "resources: [clusters]\n")
	e.edit(t, replace("cluster: web", "cluster: in-the-bootstrap"), "routes/ingress.yaml")
	if stdout, stderr, exit := xdspub(t, "render", "--bootstrap", bootstrap, "--out", t.TempDir(), e.dir); exit != 0 {
		t.Errorf("exit status %d\n%s%s", exit, stdout, stderr)
	}
}

// TestUnits starts xdspub as the unit of init does.
func TestUnits(t *testing.T) {
	i := newInitialized(t, envoytest.FreePort(t))
	unit := string(i.file(t, "systemd/xdspub.service"))
	here := strings.NewReplacer("/usr/local/bin/xdspub watch", watcher+" watch", "/usr/local/bin/xdspub", binary)
	command := func(key string) string {
		t.Helper()
		m := regexp.MustCompile(`(?m)^` + key + `=(.*/usr/local/bin/xdspub .*)$`).FindStringSubmatch(unit)
		if m == nil {
			t.Fatalf("no %s of xdspub", key)
		}
		return "exec " + here.Replace(i.moved.Replace(m[1]))
	}
	before := func() {
		t.Helper()
		if _, stderr, exit := run(t, "/bin/sh", "-c", command("ExecStartPre")); exit != 0 {
			t.Fatal(stderr)
		}
	}
	before()
	start(t, "/bin/sh", "-c", command("ExecStart")).WaitLog(t, "event=published ")
	// A bad tree keeps neither from a restart.
	envoytest.Publish(t, filepath.Join(i.dir, "config/bad.yaml"), "{")
	before()
}

// TestNamesOfTests: the tests that the documentation names exist.
func TestNamesOfTests(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(root, "docs/*.md"))
	if err != nil {
		t.Fatal(err)
	}
	inFolders, err := filepath.Glob(filepath.Join(root, "docs/*/*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(pages, inFolders...) {
		for _, m := range regexp.MustCompile("`([a-z0-9/]+)\\.(Test|Fuzz|Benchmark)(\\w+)`").FindAllStringSubmatch(page(t, strings.TrimPrefix(name, root+"/")), -1) {
			var files []string
			for _, below := range []string{"", "*", "*/*"} { // a page names the last folders of a package
				more, err := filepath.Glob(filepath.Join(root, below, m[1], "*_test.go"))
				if err != nil {
					t.Fatal(err)
				}
				files = append(files, more...)
			}
			found := false
			for _, file := range files {
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				found = found || strings.Contains(string(text), "\nfunc "+m[2]+m[3]+"(")
			}
			if !found {
				t.Errorf("%s names %s, which does not exist", name, m[0])
			}
		}
	}
}

// TestSnapshotIDs: the pages show the id that the quickstart has.
func TestSnapshotIDs(t *testing.T) {
	t.Parallel()
	tree, err := filepath.Abs(filepath.Join(root, "examples/quickstart"))
	if err != nil {
		t.Fatal(err)
	}
	plan, stderr, exit := xdspub(t, "render", "--dry-run", "--out", filepath.Join(t.TempDir(), "out"), tree)
	id := regexp.MustCompile(`\bv[0-9a-f]{16}\b`)
	want := id.FindString(plan)
	if exit != 0 || want == "" {
		t.Fatalf("exit status %d\n%s%s", exit, plan, stderr)
	}
	for _, name := range []string{"README.md", "docs/tour.md", "docs/serve.md", "docs/operations.md"} {
		for _, got := range id.FindAllString(page(t, name), -1) {
			if got != want {
				t.Errorf("%s: %s, and the quickstart has %s", name, got, want)
			}
		}
	}
}
