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

// maxGitOutput bounds what git says: the staged files of a repository with half a
// million of them.
const maxGitOutput = 64 << 20

// git runs git commands on a repository whose settings nobody reads. Settings start
// programs (core.fsmonitor, filters, hooks, includes of others), and those of a
// repository can come with the tree. So git gets a private folder for its own, with
// settings of ours, and is told where the work tree, the index and the objects are:
// these are data.
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
	// What the user of a hook or a shell has set is about another repository, or
	// about programs.
	g.env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "GIT_") || strings.HasPrefix(v, "HOME=") || strings.HasPrefix(v, "XDG_CONFIG_HOME=")
	})
	g.env = append(g.env,
		"HOME="+dir, "XDG_CONFIG_HOME="+dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_ATTR_NOSYSTEM=1",
		"GIT_DIR="+dir, "GIT_WORK_TREE="+r.top, "GIT_INDEX_FILE="+filepath.Join(r.gitDir, "index"), "GIT_OBJECT_DIRECTORY="+filepath.Join(r.common, "objects"),
		// status would write the index again, under a lock: that is for who works there.
		"GIT_OPTIONAL_LOCKS=0", "GIT_LITERAL_PATHSPECS=1")
	return g, nil
}

// fill makes the private folder a repository whose HEAD is the commit.
func (g *git) fill(r repository) error {
	format := "repositoryformatversion = 0\n"
	if len(r.commit) == 64 {
		format = "repositoryformatversion = 1\n[extensions]\nobjectFormat = sha256\n"
	}
	// What nobody shares is ignored as well, and the mode of a file is no content.
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

// command returns a git command, which ends with ctx.
func (g *git) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir, cmd.Env = g.dir, g.env
	cmd.WaitDelay = time.Second
	return cmd
}

// run returns what a git command says.
func (g *git) run(ctx context.Context, args ...string) (string, error) {
	cmd := g.command(ctx, args...)
	out := bounded.Buffer{Max: maxGitOutput}
	cmd.Stdout = &out
	err := cmd.Run()
	return out.String(), err
}
