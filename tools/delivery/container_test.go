package delivery

import (
	"debug/buildinfo"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// instruction is an instruction of the Containerfile.
type instruction struct{ name, text string }

// stages returns the instructions of each stage of the Containerfile.
func stages(t *testing.T) (list [][]instruction) {
	t.Helper()
	text := regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(written(t, filepath.Join(root, "Containerfile")), "")
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", "")) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == "FROM" {
			list = append(list, nil)
		}
		if name != "" {
			list[len(list)-1] = append(list[len(list)-1], instruction{name, strings.TrimSpace(rest)})
		}
	}
	return list
}

// of returns the texts of the instructions of a stage with a name.
func of(stage []instruction, name string) (texts []string) {
	for _, i := range stage {
		if i.name == name {
			texts = append(texts, i.text)
		}
	}
	return texts
}

// TestDockerignore: built and downloaded files are not copied into an image.
func TestDockerignore(t *testing.T) {
	git := strings.Fields(written(t, filepath.Join(root, ".gitignore")))
	for _, folder := range strings.Fields(written(t, filepath.Join(root, ".dockerignore"))) {
		if !slices.Contains(git, "/"+folder+"/") {
			t.Errorf("%s is no folder that git ignores", folder)
		}
	}
}

// TestContainerfile builds the program as the first stage does, and checks the second stage. It does not get the
// images, which would need docker or podman, and a registry.
func TestContainerfile(t *testing.T) {
	t.Parallel()
	all := stages(t)
	if len(all) != 3 {
		t.Fatalf("there are %d stages", len(all))
	}
	for _, stage := range all {
		from := stage[0].text
		if !regexp.MustCompile(`^(--platform=\$BUILDPLATFORM )?[a-z.]+/[a-z/0-9-]+:[a-z0-9.-]+( AS [a-z]+)?$`).MatchString(from) || strings.Contains(from, "latest") {
			t.Errorf("FROM %s does not name a registry, an image and a tag", from)
		}
	}
	compile, job, last := all[0], all[1], all[2]
	if got := of(compile, "WORKDIR"); !slices.Equal(got, []string{"/src"}) || !slices.Equal(of(compile, "COPY"), []string{". ."}) {
		t.Errorf("the sources go to %v by %v", got, of(compile, "COPY"))
	}
	src := clone(t)
	out := filepath.Join(filepath.Dir(src), "out")
	mounts := regexp.MustCompile(`--mount=\S+ *`)
	for _, command := range of(compile, "RUN") {
		command = strings.ReplaceAll(mounts.ReplaceAllString(command, ""), "/out", out)
		env := append(os.Environ(), "TARGETOS="+runtime.GOOS, "TARGETARCH="+runtime.GOARCH, "DOCS_URL=https://example.com/xdspub")
		if _, err := shell(src, env, command); err != nil {
			t.Fatal(err)
		}
	}
	for _, stage := range [][]instruction{job, last} {
		from, to, _ := strings.Cut(strings.TrimPrefix(strings.Join(of(stage, "COPY"), ""), "--from=build "), " ")
		program := strings.Replace(from, "/out", out, 1)
		info, err := buildinfo.ReadFile(program)
		if err != nil || info.Path != "xdspub/cmd/xdspub" || to != "/usr/local/bin/xdspub" {
			t.Errorf("COPY %s to %s: %v", from, to, err)
		}
		said, err := shell(src, nil, `"$0" rules --format json`, program)
		if !strings.Contains(said, `"url": "https://example.com/xdspub/docs/rules/`) {
			t.Errorf("the program does not know DOCS_URL: %v", err)
		}
	}
	if got := of(last, "USER"); len(got) != 1 || !regexp.MustCompile(`^[1-9]\d*:[1-9]\d*$`).MatchString(got[0]) {
		t.Errorf("the user is %v, not one that Kubernetes can tell from root", got)
	}
	if got := of(last, "ENTRYPOINT"); !slices.Equal(got, []string{`["/usr/local/bin/xdspub"]`}) {
		t.Errorf("the entry point is %v", got)
	}
}
