package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"xdspub/tools/envoytest"
	"xdspub/tools/etcdtest"
	"xdspub/tools/sh"
)

// typedPages returns the names of the pages that TestPages types. Other tests run the commands of CONTRIBUTING.md
// and of the examples.
func typedPages(t *testing.T) []string {
	t.Helper()
	names := []string{"README.md"}
	for _, pattern := range []string{"*.md", "*/*.md"} {
		files, err := fs.Glob(os.DirFS(filepath.Join(root, "docs")), pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			names = append(names, "docs/"+file)
		}
	}
	return names
}

// TestPages types the commands of the pages, in order, and compares their output.
//
// A block in the language console has commands, after "$ " and "> ", each with its output. "echo $?" prints the
// exit status of the previous command, which otherwise has to be 0. A watch continues to run: later blocks without
// a command are its next output, and ^C ends it. A block in another language is a file if the line above it ends
// with its name and a colon.
func TestPages(t *testing.T) {
	envoytest.Binary(t)
	for _, name := range typedPages(t) {
		if parts := partsOf(page(t, name)); len(parts) > 0 {
			t.Run(filepath.Base(name), func(t *testing.T) {
				t.Parallel()
				s := newSession(t, strings.Contains(page(t, name), "--restart-epoch"))
				for _, p := range parts {
					s.do(t, p)
				}
			})
		}
	}
}

// TestNoOtherCommands: no page hides commands in a language that TestPages does not type.
func TestNoOtherCommands(t *testing.T) {
	command := regexp.MustCompile(`(?m)^(\$ |(bin/)?xdspub [a-z]|curl |make )`)
	for _, name := range typedPages(t) {
		for _, m := range codeBlock.FindAllStringSubmatch(page(t, name), -1) {
			if m[1] == "" && m[2] != "console" && command.MatchString(m[3]) {
				t.Errorf("%s: these commands are not in the language console:\n%s", name, m[3])
			}
		}
	}
}

// part is a block of a page.
type part struct {
	file  string   // the name, if the block is a file
	text  string   // the content of the file, or the output of a watch
	lines []string // commands, each followed by its output
}

var (
	codeBlock = regexp.MustCompile("(?ms)^(?:[^\n]*`([^`\n]+)`:\n\n)?```(\\w*)\n(.*?)^```$")
	prompt    = regexp.MustCompile(`(?m)^\$ `)
)

// partsOf returns the blocks of a page that TestPages types, writes or compares.
func partsOf(text string) (list []part) {
	for _, m := range codeBlock.FindAllStringSubmatch(text, -1) {
		switch file, language, text := m[1], m[2], m[3]; {
		case language == "console" && prompt.MatchString(text):
			list = append(list, part{lines: prompt.Split(text, -1)[1:]})
		case language == "console":
			list = append(list, part{text: text})
		case strings.Contains(file, "/"):
			list = append(list, part{file: file, text: text})
		}
	}
	return list
}

// session is the environment of a reader of a page: the repository with its examples on free ports, a terminal, and
// a second terminal for a watch.
type session struct {
	dir   string
	tmp   string // takes the place of /tmp
	shell *exec.Cmd
	stdin *os.File
	done  *os.File // from which the exit status of each command is read
	watch *process
	ports map[string]string
	count int
	// hotRestarts means that an Envoy of the page takes over from another Envoy.
	hotRestarts bool
}

// fixed are the ports that the pages and the examples name.
var fixed = regexp.MustCompile(`\b(?:808[1-5]|8443|990[12]|1000[01]|10080|10443|2379)\b`)

// etcd is the word of the pages for etcd. The scripts of a session have no cache.
const etcd = `"$(scripts/etcd)"`

func newSession(t *testing.T, hotRestarts bool) *session {
	t.Helper()
	dir := t.TempDir()
	s := &session{dir: filepath.Join(dir, "xdspub"), tmp: filepath.Join(dir, "tmp"), ports: make(map[string]string), hotRestarts: hotRestarts}
	examples := os.DirFS(filepath.Join(root, "examples"))
	if err := os.CopyFS(filepath.Join(s.dir, "examples"), examples); err != nil {
		t.Fatal(err)
	}
	s.renumber(t)
	repository, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, made := range []string{s.tmp, filepath.Join(s.dir, "bin")} {
		if err := os.Mkdir(made, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for to, from := range map[string]string{
		filepath.Join(repository, "scripts"): "scripts", filepath.Join(repository, "Makefile"): "Makefile", binary: "bin/xdspub",
	} {
		if err := os.Symlink(to, filepath.Join(s.dir, from)); err != nil {
			t.Fatal(err)
		}
	}
	s.open(t)
	return s
}

// renumber replaces the ports in the files of the examples by those of the session.
func (s *session) renumber(t *testing.T) {
	t.Helper()
	e := &example{dir: filepath.Join(s.dir, "examples")}
	e.edit(t, func(text string) string {
		return fixed.ReplaceAllStringFunc(text, func(port string) string { return s.port(t, port) })
	})
}

func (s *session) port(t *testing.T, port string) string {
	t.Helper()
	if s.ports[port] == "" {
		s.ports[port] = strconv.Itoa(envoytest.FreePort(t))
	}
	return s.ports[port]
}

// open starts the shell in a new process group.
func (s *session) open(t *testing.T) {
	t.Helper()
	input, stdin, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	done, said, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s.shell = exec.Command("bash")
	s.shell.Dir, s.shell.Stdin, s.shell.ExtraFiles = s.dir, input, []*os.File{said}
	s.shell.Env = append(environment(), "XDSPUB_ENVOY="+s.envoy(t), "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_AUTHOR_NAME=test", "GIT_AUTHOR_EMAIL=test@example.org", "GIT_COMMITTER_NAME=test", "GIT_COMMITTER_EMAIL=test@example.org")
	s.shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := s.shell.Start(); err != nil {
		t.Fatal(err)
	}
	input.Close()
	said.Close()
	s.stdin, s.done = stdin, done
	t.Cleanup(func() {
		_ = syscall.Kill(-s.shell.Process.Pid, syscall.SIGTERM) // also the processes that the shell has started
		stdin.Close()
		_ = s.shell.Wait()
		done.Close()
	})
}

// envoy returns the path of an Envoy that can run beside others on this machine.
func (s *session) envoy(t *testing.T) string {
	t.Helper()
	path, alone := filepath.Join(s.tmp, ".envoy"), "--disable-hot-restart"
	if s.hotRestarts {
		alone = "--base-id " + envoytest.BaseID(t)
	}
	sh.Program(t, path, fmt.Sprintf("#!/bin/sh\nexec %q \"$@\" %s --concurrency 1\n", envoytest.Binary(t), alone))
	return path
}

func (s *session) do(t *testing.T, p part) {
	t.Helper()
	switch {
	case p.file != "":
		path := s.here(t, p.file)
		if !filepath.IsAbs(path) {
			path = filepath.Join(s.dir, path)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		envoytest.Publish(t, path, s.here(t, p.text))
	case p.text != "":
		s.printed(t, p.text)
	}
	status := 0
	for i, line := range p.lines {
		command, want, _ := strings.Cut(line, "\n")
		for strings.HasPrefix(want, "> ") {
			more, rest, _ := strings.Cut(want, "\n")
			command, want = command+"\n"+strings.TrimPrefix(more, "> "), rest
		}
		if command == "echo $?" {
			if want != fmt.Sprintln(status) {
				t.Errorf("after %s$ %s: %d, want %s", p.lines[i-1], command, status, want)
			}
			continue
		}
		follows := i+1 < len(p.lines) && strings.HasPrefix(p.lines[i+1], "echo $?")
		status = s.command(t, command, want)
		if status != 0 && !follows {
			t.Errorf("%s: exit status %d", command, status)
		}
		if t.Failed() {
			t.FailNow() // the next parts would fail, too
		}
	}
}

// here replaces the ports and paths in a text of the page by those of the session.
func (s *session) here(t *testing.T, text string) string {
	t.Helper()
	text = fixed.ReplaceAllStringFunc(text, func(port string) string { return s.port(t, port) })
	return strings.ReplaceAll(text, "/tmp/", s.tmp+"/")
}

// command types a command, compares its output, and returns its exit status.
func (s *session) command(t *testing.T, command, want string) (status int) {
	t.Helper()
	words := strings.Fields(command)
	switch {
	case words[0] == "make": // make may be running this test
		command = "make --dry-run " + strings.Join(words[1:], " ") + " >/dev/null"
	case words[0] == "go" || strings.Contains(command, "go build"): // links for a minute
		command = fmt.Sprintf("(cd %q && %s)", filepath.Dir(s.link(t, "scripts")), regexp.MustCompile(`go (build|install)`).ReplaceAllString(command, "go $1 -n")) + " >/dev/null 2>&1"
	case words[0] == etcd:
		command = strings.Replace(command, etcd, etcdtest.Binary(t), 1)
	case len(words) > 1 && (words[1] == "watch" || words[1] == "serve") && strings.HasSuffix(words[0], "xdspub"):
		if s.watch != nil {
			s.watch.Signal(t, syscall.SIGINT) // one writer at a time
			s.watch.Wait(t)
		}
		s.watch = start(t, "bash", "-c", fmt.Sprintf("cd %q && exec %s", s.dir, strings.Replace(s.here(t, command), "bin/xdspub", watcher, 1)))
		s.printed(t, want)
		return 0
	}
	// The effect of a file may come a little later, also for a reader.
	later := words[0] == "curl" || slices.Contains(words, "status")
	pattern := regexp.MustCompile(`(?s)\A` + s.pattern(t, want) + `\z`)
	said := ""
	judge := func() (bool, string) {
		said, status = s.typed(t, s.here(t, command))
		return want == "" || pattern.MatchString(said), fmt.Sprintf("exit status %d\n%s", status, said)
	}
	if later {
		envoytest.Eventually(t, patience, command+" prints\n"+want, judge)
	} else if right, _ := judge(); !right {
		t.Errorf("%s prints\n%s\nwant\n%s", command, said, want)
	}
	if status != 0 && !t.Failed() {
		t.Logf("%s: exit status %d\n%s", command, status, said)
	}
	return status
}

func (s *session) link(t *testing.T, name string) string {
	t.Helper()
	to, err := os.Readlink(filepath.Join(s.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// typed runs a command in the shell.
func (s *session) typed(t *testing.T, command string) (said string, status int) {
	t.Helper()
	s.count++
	output := filepath.Join(s.tmp, fmt.Sprintf(".output-%d", s.count))
	if _, err := fmt.Fprintf(s.stdin, "{ %s\n} >%q 2>&1 3>&- </dev/null\necho $? >&3\n", command, output); err != nil {
		t.Fatal(err)
	}
	if err := s.done.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fscanln(s.done, &status); err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	text, err := os.ReadFile(output)
	if err != nil {
		t.Fatal(err)
	}
	return string(text), status
}

// printed waits for the lines of a block in the output of the watch.
func (s *session) printed(t *testing.T, want string) {
	t.Helper()
	for line := range strings.Lines(want) {
		if strings.TrimSpace(line) == "^C" {
			s.watch.Signal(t, syscall.SIGINT)
			if exit := s.watch.Wait(t); exit != 0 {
				t.Errorf("%s: exit status %d", s.watch, exit)
			}
			s.watch = nil
			return
		}
		s.watch.WaitMatch(t, regexp.MustCompile(s.pattern(t, strings.TrimSuffix(line, "\n"))))
	}
}

// volatile are patterns of texts that differ between runs.
var volatile = []string{
	`\bv[0-9a-f]{16}\b`, // the id of a snapshot: the ports of an example differ from run to run
	`\d{4}-\d\d-\d\dT[0-9:.]+(?:Z|[+-]\d\d:\d\d)(?: \([0-9a-zµ.]+ ago\))?`,
	`(?:process |pid[ =])\d+`,
	`…`,
}

// pattern returns the regular expression of an output on a page. … stands for any text.
func (s *session) pattern(t *testing.T, want string) string {
	t.Helper()
	want = s.here(t, want)
	var b strings.Builder
	for {
		first := []int{len(want), len(want)}
		like := ""
		for _, v := range volatile {
			if at := regexp.MustCompile(v).FindStringIndex(want); at != nil && at[0] < first[0] {
				first, like = at, v
			}
		}
		b.WriteString(regexp.QuoteMeta(want[:first[0]]))
		if like == "" {
			return b.String()
		}
		b.WriteString(strings.ReplaceAll(like, "…", ".*?"))
		want = want[first[1]:]
	}
}
