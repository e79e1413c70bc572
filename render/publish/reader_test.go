package publish

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"xdspub/tools/memdir"
	"xdspub/tools/portion"
)

// generation returns the n-th text of a file. The text has its number and can be checked; its length differs
// from the length of the next.
func generation(path string, n int) []byte {
	body := fmt.Sprintf("%s %d\n%s", path, n, strings.Repeat("x", 1000+n*7919%30000))
	return fmt.Appendf(nil, "%x %s", sha256.Sum256([]byte(body)), body)
}

// generationOf returns the number of a text of path, and an error if data is not one whole text.
func generationOf(path string, data []byte) (int, error) {
	sum, body, _ := bytes.Cut(data, []byte(" "))
	if want := fmt.Sprintf("%x", sha256.Sum256(body)); string(sum) != want {
		return 0, fmt.Errorf("%s: %d bytes that were never published", path, len(data))
	}
	line, _, _ := strings.Cut(string(body), "\n")
	name, n, _ := strings.Cut(line, " ")
	if name != path {
		return 0, fmt.Errorf("%s holds %s", path, name)
	}
	return strconv.Atoi(n)
}

// TestReaders opens all files while 1,000 publishes, or a sample of 250, change all of them. No file may be missing,
// short or mixed, or get older. A reader that sees the file of a step must see the files of the steps before.
func TestReaders(t *testing.T) {
	publishes := 1000 / portion.Every(4, 10)
	paths := []string{"sds/cert/sds.json", "eds/web/eds.json", "cds/cds.json", "lds/lds.json"}
	plan := func(n int) (p Plan) {
		for _, path := range paths {
			p.Steps = append(p.Steps, Step{Name: path, Write: []File{{Path: path, Data: generation(path, n)}}})
		}
		return p
	}
	out := memdir.New(t)
	d := mustOpen(t, out, &probe{root: out, quick: true})
	mustPublish(t, d, plan(1))

	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			seen := map[string]int{}
			for rounds := 0; ; rounds++ {
				select {
				case <-done:
					if rounds == 0 {
						t.Error("a reader had no turn")
					}
					return
				default:
				}
				last := 0
				for i := len(paths) - 1; i >= 0; i-- { // the last step first
					path := paths[i]
					data, err := os.ReadFile(filepath.Join(out, path))
					if err != nil {
						t.Error(err)
						return
					}
					n, err := generationOf(path, data)
					if err != nil {
						t.Error(err)
						return
					}
					if n < last || n < seen[path] {
						t.Errorf("%s is %d, after %d in a later step and %d in itself", path, n, last, seen[path])
						return
					}
					last, seen[path] = n, n
				}
			}
		})
	}
	for n := 2; n <= publishes; n++ {
		if res, err := d.Publish(t.Context(), plan(n)); err != nil || len(res.Steps) != len(paths) {
			t.Errorf("publish %d: %v, %v", n, res, err)
			break
		}
	}
	close(done)
	readers.Wait()
}
