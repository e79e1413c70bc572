package delivery

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"xdspub/tools/sh"
)

// action is the part of action.yml that the tests need.
type action struct {
	Inputs map[string]struct {
		Default  string
		Required bool
	}
	Outputs map[string]struct{ Value string }
	Runs    struct {
		Using string
		Steps []step
	}
}

// step is a step of an action, or of a job of GitHub Actions.
type step struct {
	ID, If, Uses, Shell, Run string
	Env, With                map[string]string
}

func theAction(t *testing.T) (a action) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(written(t, filepath.Join(root, "action.yml"))), &a); err != nil {
		t.Fatal(err)
	}
	return a
}

// expression matches an expression that GitHub replaces by a value before it calls the shell.
var expression = regexp.MustCompile(`\$\{\{\s*(.*?)\s*\}\}`)

// runner runs the steps of the action with scripts, like a runner of GitHub Actions.
type runner struct {
	workspace, temp string
	inputs          map[string]string
	outputs         map[string]string // by steps.ID.outputs.NAME
	summary         string
	log             string
}

// newRunner returns a runner with the inputs of a user.
func newRunner(t *testing.T, a action, workspace string, inputs map[string]string) *runner {
	t.Helper()
	r := &runner{workspace: workspace, temp: t.TempDir(), inputs: make(map[string]string), outputs: make(map[string]string)}
	for name, input := range a.Inputs {
		r.inputs[name] = input.Default
	}
	for name, value := range inputs {
		if _, ok := a.Inputs[name]; !ok {
			t.Fatalf("action.yml has no input %q", name)
		}
		r.inputs[name] = value
	}
	return r
}

// value returns a text with values in place of its expressions, as GitHub does.
func (r *runner) value(t *testing.T, from, text string) string {
	t.Helper()
	return expression.ReplaceAllStringFunc(text, func(e string) string {
		name := expression.FindStringSubmatch(e)[1]
		if input, ok := strings.CutPrefix(name, "inputs."); ok {
			return r.inputs[input]
		}
		if output, ok := r.outputs[name]; ok {
			return output
		}
		switch name {
		case "github.action_path":
			return from
		case "runner.temp":
			return r.temp
		case "runner.os", "runner.arch":
			return "some"
		case "github.repository":
			return "example/config"
		case "github.event.pull_request.number":
			return "7"
		}
		t.Fatalf("no value for %s", e)
		return ""
	})
}

// run runs a step, and returns whether it fails.
func (r *runner) run(t *testing.T, from string, s step) (failed bool) {
	t.Helper()
	files := t.TempDir()
	output, summary := filepath.Join(files, "output"), filepath.Join(files, "summary")
	script := filepath.Join(files, "script")
	for name, text := range map[string]string{output: "", summary: "", script: s.Run} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	env := append(os.Environ(), "CI=true", "GITHUB_ACTIONS=true", "GITHUB_WORKSPACE="+r.workspace, "GITHUB_ACTION_PATH="+from,
		"GITHUB_OUTPUT="+output, "GITHUB_STEP_SUMMARY="+summary, "RUNNER_TEMP="+r.temp)
	for name, text := range s.Env {
		env = append(env, name+"="+r.value(t, from, text))
	}
	said, err := shell(r.workspace, env, `exec bash --noprofile --norc -eo pipefail "$0"`, script)
	r.log += said
	for line := range strings.Lines(written(t, output)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		r.outputs["steps."+s.ID+".outputs."+name] = value
	}
	r.summary += written(t, summary)
	return err != nil
}

// TestAction runs the scripts of the action, which builds the program of a clone, and checks a tree.
func TestAction(t *testing.T) {
	t.Parallel()
	a, from, user := theAction(t), clone(t), userRepository(t)
	r := newRunner(t, a, user, map[string]string{"path": "envoy", "sarif": "out.sarif", "args": "--warnings-as-errors\n--secrets=stub\n"})
	for _, s := range a.Runs.Steps {
		if s.Run != "" && r.run(t, from, s) {
			t.Fatalf("this fails:\n%s\n%s", s.Run, r.log)
		}
	}
	if sum := r.outputs["steps.source.outputs.sum"]; !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(sum) {
		t.Errorf("the key of the cache is %q", sum)
	}
	r.wants(t, a, "0", "0 errors, 0 warnings in 5 resources of 5 files", 0)

	built := filepath.Join(r.temp, "xdspub", "bin", "xdspub")
	checks := validation(t, a)
	misspell(t, user)
	r = newRunner(t, a, user, map[string]string{"path": "envoy\n", "sarif": "out.sarif", "program": built})
	if !r.run(t, from, checks) {
		t.Error("a broken tree passes")
	}
	r.wants(t, a, "1", `unknown cluster "wbe"`, 1)
	if !strings.Contains(r.log, "::error file=envoy/routes/ingress.yaml,line=20,") {
		t.Errorf("no annotation:\n%s", r.log)
	}

	// A fault of before the change does not fail the action. The clone of a runner has one commit.
	sh.Run(t, user, "git commit --quiet --all --message broken && echo >>envoy/clusters/web.yaml && git commit --quiet --all --message more")
	for _, since := range []string{strings.TrimSpace(sh.Run(t, user, "git rev-parse HEAD~1")), "broken"} {
		shallow := filepath.Join(t.TempDir(), "shallow")
		if _, err := shell(user, nil, `git branch --force broken HEAD~1; git clone --quiet --depth 1 "file://$PWD" "$0"`, shallow); err != nil {
			t.Fatal(err)
		}
		r = newRunner(t, a, shallow, map[string]string{"path": "envoy", "changed-since": since, "program": built, "sarif": "out.sarif"})
		if r.run(t, from, checks) {
			t.Errorf("the change since %s does not pass:\n%s", since, r.log)
		}
		r.wants(t, a, "0", "not shown: 1 error", 0)
	}

	r = newRunner(t, a, user, map[string]string{"path": "none", "program": built})
	if !r.run(t, from, checks) {
		t.Error("a tree that is not there passes")
	}
	r.wants(t, a, "3", "", -1)
}

// wants fails the test unless the action has set the output status, a summary with a text, and a number of results
// in a SARIF log.
func (r *runner) wants(t *testing.T, a action, status, summary string, results int) {
	t.Helper()
	if got := r.value(t, "", a.Outputs["status"].Value); got != status {
		t.Errorf("the status is %q, want %q\n%s", got, status, r.log)
	}
	if !strings.Contains(r.summary, summary) || summary == "" && r.summary != "" {
		t.Errorf("the summary does not have %q:\n%s", summary, r.summary)
	}
	for line := range strings.Lines(r.summary) {
		if !strings.HasPrefix(line, "    ") {
			t.Errorf("this line of the summary is Markdown: %s", line)
		}
	}
	if results < 0 {
		return
	}
	text := written(t, filepath.Join(r.workspace, "out.sarif"))
	var log struct{ Runs []struct{ Results []any } }
	if err := json.Unmarshal([]byte(text), &log); err != nil || len(log.Runs) != 1 || len(log.Runs[0].Results) != results {
		t.Errorf("the SARIF log has other than %d results (%v):\n%s", results, err, text)
	}
}

// TestActionInputs: no input of the action becomes a command, another option, or an output.
func TestActionInputs(t *testing.T) {
	t.Parallel()
	a := theAction(t)
	for _, s := range a.Runs.Steps {
		if expression.MatchString(s.Run) {
			t.Errorf("an expression in a script is a command of whoever writes its value:\n%s", s.Run)
		}
		if s.Run != "" && s.Shell != "bash" {
			t.Errorf("this has the shell %q:\n%s", s.Shell, s.Run)
		}
		if s.Uses != "" && !regexp.MustCompile(`^(actions|github)/[a-z/-]+@v\d+$`).MatchString(s.Uses) {
			t.Errorf("%s is none of GitHub's own actions, or has no version", s.Uses)
		}
	}
	program := filepath.Join(inPath(t), "xdspub")
	for input := range a.Inputs {
		for _, hostile := range []string{
			"$(touch pwned)", "`touch pwned`", `"; touch pwned; "`, "'; touch pwned; '", "x\ntouch pwned", "x; touch pwned", "*", "--output=pwned",
			"-x", "--", "x\nstatus=0", "--upload-pack=touch pwned", "::set-output name=status::0", "../user/envoy\n",
		} {
			user := userRepository(t)
			sh.Run(t, user, "git remote add origin .")
			inputs := map[string]string{"path": "envoy", "program": program}
			if input != "args" || !strings.HasPrefix(hostile, "--output") { // args may have the option
				inputs[input] = hostile
			}
			r := newRunner(t, a, user, inputs)
			failed := r.run(t, user, validation(t, a))
			if _, err := os.Lstat(filepath.Join(user, "pwned")); err == nil {
				t.Errorf("%s: %q is obeyed", input, hostile)
			}
			if got := r.outputs["steps.validate.outputs.status"]; failed && got == "0" || len(r.outputs) > 1 {
				t.Errorf("%s: %q gives the outputs %v", input, hostile, r.outputs)
			}
		}
	}
}

// validation returns the step that runs validate.
func validation(t *testing.T, a action) step { return a.step(t, "validate") }

func (a action) step(t *testing.T, id string) step {
	t.Helper()
	for _, s := range a.Runs.Steps {
		if s.ID == id {
			return s
		}
	}
	t.Fatalf("action.yml has no step %s", id)
	return step{}
}

// TestActionComments checks that the step diff writes the effects of a change into the summary and, by gh, into one
// comment of the pull request, and that a tree with errors has no comment.
func TestActionComments(t *testing.T) {
	a, user := theAction(t), userRepository(t)
	bin := t.TempDir()
	sh.Program(t, filepath.Join(bin, "gh"), "#!/bin/sh\necho \"$@\" >"+bin+"/args\nfor last; do :; done\ncp \"$last\" "+bin+"/body\n")
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	sh.Run(t, user, `sed 's/cluster: web/cluster: api/' envoy/routes/ingress.yaml >new; mv new envoy/routes/ingress.yaml`)
	program := filepath.Join(bin, "xdspub")
	sh.Run(t, root, "go build -o "+program+" ./cmd/xdspub")
	inputs := map[string]string{"path": "envoy\n", "program": program, "diff-from": "HEAD"}
	r := newRunner(t, a, user, inputs)
	if r.run(t, root, a.step(t, "diff")) {
		t.Fatal(r.log)
	}
	const effect = `GET http://example.com/ goes to cluster "api" instead of cluster "web"`
	if _, err := os.Stat(filepath.Join(bin, "args")); err == nil || !strings.Contains(r.summary, effect) {
		t.Errorf("without a token, the summary is\n%s\n%s", r.summary, r.log)
	}
	inputs["token"] = "secret"
	if r = newRunner(t, a, user, inputs); r.run(t, root, a.step(t, "diff")) {
		t.Fatal(r.log)
	}
	if args := written(t, filepath.Join(bin, "args")); !strings.HasPrefix(args, "pr comment 7 --edit-last --create-if-none --body-file ") ||
		!strings.Contains(written(t, filepath.Join(bin, "body")), effect) {
		t.Errorf("gh gets %s", args)
	}
	sh.Run(t, user, "git checkout --quiet envoy")
	misspell(t, user)
	if err := os.Remove(filepath.Join(bin, "args")); err != nil {
		t.Fatal(err)
	}
	if r = newRunner(t, a, user, inputs); !r.run(t, root, a.step(t, "diff")) {
		t.Errorf("a tree with errors has a comment:\n%s", r.log)
	}
	if _, err := os.Stat(filepath.Join(bin, "args")); err == nil {
		t.Error("a tree with errors has a comment")
	}
}

// misspell makes an error in the tree of a user.
func misspell(t *testing.T, user string) {
	t.Helper()
	sh.Run(t, user, "sed 's/cluster: web/cluster: wbe/' envoy/routes/ingress.yaml >new && mv new envoy/routes/ingress.yaml")
}
