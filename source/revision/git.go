package revision

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"xdspub/internal/bounded"
	"xdspub/internal/safefile"
)

// maxGitOutput is the largest output of git in bytes, enough for half a million staged files.
const maxGitOutput = 64 << 20

// git runs git commands without reading the settings of the repository or the user. Settings can start
// programs (core.fsmonitor, filters, hooks, includes), and the settings of a repository can come with the
// tree. So git gets a private folder as its repository, with settings from this package. Environment
// variables point git to the work tree, the index and the objects, which are only data.
type git struct {
	dir string
	env []string
}

func newGit(r repository) (*git, error) {
	dir, err := os.MkdirTemp("", "xdspub-git-")
	if err != nil {
		return nil, err
	}
	g := &git{dir: dir}
	if err := g.fill(r); err != nil {
		g.close()
		return nil, err
	}
	// The user's GIT_ variables concern another repository, or name programs.
	g.env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "GIT_") || strings.HasPrefix(v, "HOME=") || strings.HasPrefix(v, "XDG_CONFIG_HOME=")
	})
	g.env = append(g.env,
		"HOME="+dir, "XDG_CONFIG_HOME="+dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_ATTR_NOSYSTEM=1",
		"GIT_DIR="+dir, "GIT_WORK_TREE="+r.top, "GIT_INDEX_FILE="+filepath.Join(r.gitDir, "index"), "GIT_OBJECT_DIRECTORY="+filepath.Join(r.common, "objects"),
		// Without this, status would lock and rewrite the index of the work tree.
		"GIT_OPTIONAL_LOCKS=0", "GIT_LITERAL_PATHSPECS=1")
	return g, nil
}

// fill makes the private folder a repository whose HEAD is r.commit.
func (g *git) fill(r repository) error {
	format := "repositoryformatversion = 0\n"
	if len(r.commit) == 64 {
		format = "repositoryformatversion = 1\n[extensions]\nobjectFormat = sha256\n"
	}
	// Honor info/exclude, which no commit contains. Ignore file modes, which are not content.
	exclude, _ := safefile.Read(filepath.Join(r.common, "info", "exclude"), maxGitFile)
	for _, dir := range []string{"refs", "info"} {
		if err := os.Mkdir(filepath.Join(g.dir, dir), 0o700); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{
		"HEAD": r.commit + "\n", "config": "[core]\nbare = false\nfileMode = false\n" + format, "info/exclude": string(exclude),
	} {
		if err := os.WriteFile(filepath.Join(g.dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (g *git) close() { os.RemoveAll(g.dir) }

// command returns a git command that ends with ctx.
func (g *git) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir, cmd.Env = g.dir, g.env
	cmd.WaitDelay = time.Second
	return cmd
}

// run returns the output of a git command.
func (g *git) run(ctx context.Context, args ...string) (string, error) {
	cmd := g.command(ctx, args...)
	out := bounded.Buffer{Max: maxGitOutput}
	cmd.Stdout = &out
	err := cmd.Run()
	return out.String(), err
}
