package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// wide are names that could leave their boxes, or become more than text.
var wide = []string{
	"<script>window.hacked = 1</script>", `" onload="window.hacked = 1`, strings.Repeat("W", 300), strings.Repeat("wide name ", 20),
	"日本語の名前がとても長い場合にどうなるか", "مرحبا بالعالم هذا اسم طويل", strings.Repeat("é\u0301", 50), "🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉",
}

// TestGraph opens the image of xdspub graph: each text is inside of its box, names are text, and the colours follow the
// screen.
func TestGraph(t *testing.T) {
	b := open(t)
	dir := t.TempDir()
	var list []map[string]any
	for _, name := range wide {
		list = append(list, map[string]any{"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": name, "type": "EDS"})
	}
	data, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "clusters.json"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	xdspub := program(t)
	for name, source := range map[string]string{"quickstart": "../../examples/quickstart", "wide": dir} {
		image, err := exec.Command(xdspub, "graph", "--quiet", source).Output()
		if _, refused := err.(*exec.ExitError); err != nil && !refused {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), name+".svg")
		if err := os.WriteFile(path, image, 0o600); err != nil {
			t.Fatal(err)
		}
		emulate(t, b, "light")
		run(t, b, chromedp.Navigate("file://"+path))
		// getBBox returns the whole text, also the part that the inner svg element would cut off.
		outside := run(t, b, chromedp.Evaluate[string](`JSON.stringify([...document.querySelectorAll("svg.node text")].filter(x => {
			const box = x.getBBox(), node = x.parentNode;
			return box.x < 0 || box.y < 0 || box.x + box.width > node.width.baseVal.value || box.y + box.height > node.height.baseVal.value;
		}).map(x => x.textContent))`))
		if outside != "[]" {
			t.Errorf("%s: outside of their boxes: %s", name, outside)
		}
		if n := run(t, b, chromedp.Evaluate[int](`document.querySelectorAll("svg.node text.label").length`)); n < len(wide) {
			t.Errorf("%s: only %d boxes", name, n)
		}
		if run(t, b, chromedp.Evaluate[bool](`"hacked" in window || document.querySelector("script, [onload]") !== null`)) {
			t.Errorf("%s: a name is more than text", name)
		}
		// The clusters of the tree wide have no endpoints: each reference dangles.
		red := run(t, b, chromedp.Evaluate[int](`[...document.querySelectorAll("path.edge")].filter(e => getComputedStyle(e).stroke === "rgb(198, 40, 40)").length`))
		if want := map[string]int{"wide": len(wide)}[name]; red != want {
			t.Errorf("%s: %d red lines, want %d", name, red, want)
		}
		colors := make(map[string]bool)
		for _, scheme := range []string{"light", "dark"} {
			emulate(t, b, scheme)
			colors[run(t, b, chromedp.Evaluate[string](`getComputedStyle(document.documentElement).backgroundColor + getComputedStyle(document.querySelector(".label")).fill`))] = true
			if dir := os.Getenv("XDSPUB_SCREENSHOTS"); dir != "" {
				if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("graph-%s-%s.png", name, scheme)), run(t, b, chromedp.FullScreenshot(100)), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
		if len(colors) != 2 {
			t.Errorf("%s: the same colours for light and dark: %v", name, colors)
		}
	}
}

// emulate makes the screen light or dark.
func emulate(t *testing.T, b *browser, scheme string) {
	t.Helper()
	run(t, b, chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return err
	}))
}
