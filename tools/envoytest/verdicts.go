package envoytest

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// Verdict says whether Envoy accepts a text.
type Verdict struct {
	Text  string
	Taken bool
}

// Verdicts reads a file of lines such as `taken "%PROTOCOL%"` and `refused "%FOO%"`. Empty lines, and lines that
// begin with #, do not count.
func Verdicts(t testing.TB, path string) (list []Verdict) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		word, quoted, _ := strings.Cut(line, " ")
		text, err := strconv.Unquote(strings.TrimSpace(quoted))
		if err != nil || word != "taken" && word != "refused" {
			t.Fatalf("%s: %s: want taken or refused, and a quoted text", path, line)
		}
		list = append(list, Verdict{Text: text, Taken: word == "taken"})
	}
	return list
}
