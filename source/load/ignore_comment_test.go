package load_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"xdspub/source/load"
)

func TestIgnoreComments(t *testing.T) {
	for name, c := range map[string]struct {
		format, text string
		want         []string // LINE:COLUMN-END CODES about LINE [RESOURCE]
	}{
		"none": {"yaml", cluster("a"), nil},
		"its own line": {"yaml", `
"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
name: a # xdspub:ignore some-rule it is so
connect_timeout: 1s  #xdspub:ignore a,b/c because
`, []string{"3:9-43 some-rule about 3", "4:22-50 a b/c about 4"}},
		"a resource": {"yaml", `
# xdspub:ignore one of the first
---
# a comment
# xdspub:ignore two of the first as well

"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
# xdspub:ignore three the next line
name: a
---
resources:
# xdspub:ignore four in a list
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: b
# xdspub:ignore five above a wrapper
- "@type": type.googleapis.com/envoy.service.discovery.v3.Resource
  name: c
  resource: {"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: c}
# xdspub:ignore six at the end
`, []string{
			`2:1-33 one about 7 [cluster "a"]`, `5:1-41 two about 7 [cluster "a"]`, "8:1-36 three about 9", `12:1-31 four about 13 [cluster "b"]`,
			`15:1-37 five about 16 [cluster "c"]`, "19:1-31 six about 0",
		}},
		"static resources": {"yaml", `
static_resources:
  clusters:
  # xdspub:ignore one of a bootstrap
  - name: a
`, []string{`4:3-37 one about 5 [cluster "a"]`}},
		"text is none": {"yaml", `
"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
name: "a # xdspub:ignore quoted in quotes"
alt_stat_name: 'a'' # xdspub:ignore quoted in quotes' # xdspub:ignore real a comment
metadata:
  filter_metadata:
    x:
      code: | # xdspub:ignore header of a text
        # xdspub:ignore lua in a text

         # xdspub:ignore lua in a text
      it: it's # xdspub:ignore behind an apostrophe
`, []string{"4:55-85 real about 4", "8:15-47 header about 8", "12:16-52 behind about 12"}},
		"incomplete": {"yaml", "#xdspub:ignore\n# xdspub:ignore code\n# xdspub:ignore code --\n# xdspub:ignored code x\n# see xdspub:ignore code x\n" + cluster("a"), []string{
			`1:1-15  about 6 [cluster "a"] without a reason`, `2:1-21 code about 6 [cluster "a"] without a reason`, `3:1-24 code about 6 [cluster "a"] without a reason`,
		}},
		"text proto": {"pb_text", `# proto-message: envoy.service.discovery.v3.DiscoveryResponse
# xdspub:ignore one of the first
resources {
  [type.googleapis.com/envoy.config.cluster.v3.Cluster] {
    name: "a#b" # xdspub:ignore two of the name
  }
}
`, []string{`2:1-33 one about 3 [cluster "a#b"]`, "5:17-48 two about 5"}},
		"JSON": {"json", `{"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "# xdspub:ignore a b"}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, c := range load.AsWritten(load.Input{Name: "file", Format: c.format, Data: []byte(c.text)}).IgnoreComments() {
				text := fmt.Sprintf("%d:%d-%d %s about %d", c.Range.Line, c.Column, c.EndColumn, strings.Join(c.Codes, " "), c.Line)
				if c.Resource.Type != nil {
					text += fmt.Sprintf(" [%s]", c.Resource)
				}
				if !c.HasReason {
					text += " without a reason"
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestHostileIgnoreComments checks that comments cost time and memory in proportion to the text, and that their
// number is limited.
func TestHostileIgnoreComments(t *testing.T) {
	if testing.Short() {
		t.Skip("reads megabytes, in one goroutine: nothing for the race detector")
	}
	for name, text := range map[string]string{
		"many":  strings.Repeat("# xdspub:ignore a b\n", 300_000),
		"lines": strings.Repeat("a: 1 # xdspub:ignore a b\n", 10_001),
	} {
		comments := load.AsWritten(load.Input{Name: "file", Format: "yaml", Data: []byte(text + cluster("a"))}).IgnoreComments()
		if len(comments) != 10_000 || !comments[len(comments)-1].Last || comments[0].Last {
			t.Errorf("%s: %d comments", name, len(comments))
		}
	}
	long := "# xdspub:ignore " + strings.Repeat("a,", 500_000) + " " + strings.Repeat("b ", 500_000) + "\n" + cluster("a")
	comments := load.AsWritten(load.Input{Name: "file", Format: "yaml", Data: []byte(long)}).IgnoreComments()
	if len(comments) != 1 || len(comments[0].Codes) > 256 || !comments[0].HasReason {
		t.Errorf("a long comment: %.300v", comments)
	}
}
