package delivery

import (
	"encoding/json"
	"encoding/xml"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"xdspub/tools/sh"
)

// job is a job of GitHub Actions or of GitLab.
type job struct {
	Steps     []step
	Script    []string
	Artifacts struct {
		Reports map[string]string
	}
}

// jobsOf returns the jobs of a block of YAML: a workflow, a part of a workflow, or jobs of GitLab.
func jobsOf(t *testing.T, text string) (list []job) {
	t.Helper()
	var part job
	var workflow struct{ Jobs map[string]job }
	var gitlab map[string]any
	for _, into := range []any{&part, &workflow, &gitlab} {
		if err := yaml.Unmarshal([]byte(text), into); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	}
	list = append(list, part)
	for _, j := range workflow.Jobs {
		list = append(list, j)
	}
	for name := range gitlab {
		var jobs map[string]job
		if err := yaml.Unmarshal([]byte(text), &jobs); err == nil {
			list = append(list, jobs[name])
		}
	}
	return list
}

// siteRepository returns a repository with the files of xdspub init, and the quickstart as the tree envoy.
func siteRepository(t *testing.T, program string) string {
	t.Helper()
	dir := userRepository(t)
	if _, err := shell(dir, nil, `"$0" init . && git add . && git commit --quiet --message init`, program); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestJobs runs the commands of the jobs of docs/ci.md for a valid tree and for an invalid tree.
func TestJobs(t *testing.T) {
	t.Parallel()
	path := inPath(t)
	program := filepath.Join(path, "xdspub")
	gitlab := t.TempDir()
	sh.Program(t, filepath.Join(gitlab, "curl"), "#!/bin/sh\ngrep '^### Envoy: ' diff.md\n") // posts the comment
	env := append(os.Environ(), "PATH="+path+":"+gitlab+":"+os.Getenv("PATH"), "CI_MERGE_REQUEST_DIFF_BASE_SHA=HEAD", "GITLAB_TOKEN=token",
		"CI_API_V4_URL=https://gitlab.example.com/api/v4", "CI_PROJECT_ID=1", "CI_MERGE_REQUEST_IID=2")
	ran := 0
	for _, text := range append(blocks(t, "yaml", "- uses: actions/checkout"), blocks(t, "yaml", "  script:\n")...) {
		for _, j := range jobsOf(t, text) {
			var commands []string
			for _, s := range j.Steps {
				switch {
				case s.Run != "":
					commands = append(commands, s.Run)
				case strings.HasPrefix(s.Uses, "example/xdspub@"):
					ran++
					runAction(t, s, program)
				}
			}
			commands = append(commands, j.Script...)
			if len(commands) == 0 {
				continue
			}
			ran++
			site := siteRepository(t, program)
			for _, command := range commands {
				if out, err := shell(site, env, command); err != nil {
					t.Errorf("%s: %v", command, err)
				} else if strings.Contains(command, "--format text") && !strings.Contains(out, "0 errors, 0 warnings") {
					t.Errorf("%s prints:\n%s", command, out)
				}
			}
			sh.Run(t, site, "rm config/clusters.yaml")
			if out, err := shell(site, env, commands[0]); err == nil || !strings.Contains(out, "unknown cluster") {
				t.Errorf("%s: a broken tree passes\n%s", commands[0], out)
			}
			for kind, name := range j.Artifacts.Reports {
				wantReport(t, kind, filepath.Join(site, name))
			}
		}
	}
	if ran != 6 {
		t.Errorf("docs/ci.md has %d jobs that run something", ran)
	}
}

// runAction runs the action with the inputs of a step.
func runAction(t *testing.T, s step, program string) {
	t.Helper()
	a, user := theAction(t), userRepository(t)
	inputs := map[string]string{"program": program}
	for name, value := range s.With {
		inputs[name] = strings.ReplaceAll(value, "${{ github.event.pull_request.base.sha }}", "HEAD")
	}
	misspell(t, user)
	if r := newRunner(t, a, user, inputs); !r.run(t, user, validation(t, a)) || !strings.Contains(r.log, "::error file=envoy/") {
		t.Errorf("%v: no error is found:\n%s", inputs, r.log)
	}
}

// wantReport reads a report like the program that it is for.
func wantReport(t *testing.T, kind, name string) {
	t.Helper()
	text := written(t, name)
	read, into := json.Unmarshal, any(&[]struct{ Fingerprint string }{})
	if kind == "junit" {
		read, into = xml.Unmarshal, &struct{ XMLName xml.Name }{}
	}
	if err := read([]byte(text), into); err != nil || !strings.Contains(text, "unknown cluster") {
		t.Errorf("the report for %s (%v):\n%s", kind, err, text)
	}
}

// TestJenkins runs the command of the stage of docs/ci.md.
func TestJenkins(t *testing.T) {
	t.Parallel()
	path := inPath(t)
	site := siteRepository(t, filepath.Join(path, "xdspub"))
	for _, stage := range blocks(t, "groovy", "junit") {
		command := regexp.MustCompile(`sh '([^']*)'`).FindStringSubmatch(stage)
		if command == nil {
			t.Fatalf("no command in %s", stage)
		}
		if _, err := shell(site, append(os.Environ(), "PATH="+path+":"+os.Getenv("PATH")), command[1]); err != nil {
			t.Error(err)
		}
		report := regexp.MustCompile(`junit '([^']*)'`).FindStringSubmatch(stage)
		if _, err := os.Stat(filepath.Join(site, report[1])); err != nil {
			t.Error(err)
		}
	}
}
