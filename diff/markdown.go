package diff

import (
	"fmt"
	"io"
	"strings"

	"xdspub/diag"
)

// MarkdownSize is the largest size of a comment on GitHub, in bytes of Markdown. GitLab allows more.
const MarkdownSize = 65_536

// tail is the room for the last line, in bytes.
const tail = 400

// WriteMarkdown writes the difference as Markdown for a comment of a pull request, in at most MarkdownSize bytes. The
// last line counts the effects, resources and fields that have no room. Text from outside stands in code, which
// Markdown does not interpret.
func (d *Diff) WriteMarkdown(w io.Writer, o TextOptions) error {
	var b strings.Builder
	fits := func(text string) bool {
		if b.Len()+len(text) > MarkdownSize-tail {
			return false
		}
		b.WriteString(text)
		return true
	}
	title := "### Envoy: " + d.Summary() + "\n\n"
	if o.Was != "" {
		title += fmt.Sprintf("From %s to %s.\n\n", code(o.Was), code(o.Is))
	}
	if o.Note != "" {
		title += fmt.Sprintf("**Note**: %s.\n\n", code(o.Note))
	}
	fits(title)
	effects := 0
	for i, e := range d.Effects {
		line := "- " + code(e.Text) + "\n"
		if e.Kind.Disturbs() {
			line = "- **" + strings.ReplaceAll(string(e.Kind), "-", " ") + "**: " + code(e.Text) + "\n"
		}
		if b.Len() > MarkdownSize/2 || !fits(line) {
			effects = len(d.Effects) - i
			break
		}
	}
	resources := 0
	for i, r := range d.Resources {
		if !fits(markdownOf(r)) {
			resources = len(d.Resources) - i
			break
		}
	}
	var cut []string
	if effects > 0 {
		cut = append(cut, diag.Count(effects, "more effect"))
	}
	if resources > 0 {
		cut = append(cut, diag.Count(resources, "more resource"))
	}
	if d.Omitted > 0 {
		cut = append(cut, diag.Count(d.Omitted, "more field"))
	}
	if len(cut) > 0 {
		fmt.Fprintf(&b, "\n… and %s: `xdspub diff` prints them all.\n", strings.Join(cut, ", "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// mostShown is the largest number of fields of a resource in Markdown.
const mostShown = 100

// markdownOf returns a resource as a part that a reader can open.
func markdownOf(r Resource) string {
	var lines strings.Builder
	for i, f := range r.Fields {
		if i == mostShown {
			fmt.Fprintf(&lines, "… and %s\n", diag.Count(len(r.Fields)-i, "more field"))
			break
		}
		mark := map[Change]string{Added: "+ ", Removed: "- ", Changed: "! ", Moved: "! "}[f.Change]
		lines.WriteString(mark + f.String() + "\n")
	}
	fence := strings.Repeat("`", max(3, longestRun(lines.String())+1))
	name := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(clip(r.key.String()))
	return fmt.Sprintf("\n<details><summary>%s <code>%s</code></summary>\n\n%sdiff\n%s%s\n\n</details>\n", r.Change, name, fence, lines.String(), fence)
}

// code returns a text as a code span.
func code(text string) string {
	text = clip(text)
	fence := strings.Repeat("`", longestRun(text)+1)
	if strings.HasPrefix(text, "`") || strings.HasSuffix(text, "`") {
		text = " " + text + " "
	}
	return fence + text + fence
}

// longestRun returns the length of the longest run of backticks.
func longestRun(text string) (longest int) {
	n := 0
	for _, c := range []byte(text) {
		if n++; c != '`' {
			n = 0
		}
		longest = max(longest, n)
	}
	return longest
}
