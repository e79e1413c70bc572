package main

import (
	"net/url"
	"os"
	"path"
	"strings"
	"testing"

	"xdspub/cmd/codes"
)

// TestURLs checks that the URL of each code leads to a heading of docs/rules.
func TestURLs(t *testing.T) {
	const base = "https://example.com/a%20b/blob/v1"
	for _, address := range []string{base, base + "/"} {
		codes, err := withURLs(address, codes.All())
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range codes {
			rest, ok := strings.CutPrefix(c.URL, base+"/")
			page, err := url.Parse(rest)
			if !ok || err != nil {
				t.Fatalf("%s has the address %q: %v", c.Name, c.URL, err)
			}
			text, err := os.ReadFile(path.Join("../..", page.Path))
			if err != nil {
				t.Fatal(err)
			}
			if page.Fragment != c.Name || !strings.Contains(string(text), "\n## "+c.Name+"\n") {
				t.Errorf("%s leads to no heading", c.URL)
			}
		}
	}
}

func TestDocsURL(t *testing.T) {
	for base, want := range map[string]string{
		"":                             "",
		"http://127.0.0.1:8080":        "http://127.0.0.1:8080/docs/rules/",
		"https://example.com/x/y/":     "https://example.com/x/y/docs/rules/",
		"example.com/xdspub":           "error",
		"//example.com/xdspub":         "error",
		"ftp://example.com/xdspub":     "error",
		"https:///xdspub":              "error",
		"https://me:word@example.com/": "error",
		"https://example.com/?docs=1":  "error",
		"https://example.com/#docs":    "error",
		"https://exam ple.com/":        "error",
		"javascript:alert(1)":          "error",
	} {
		got := ""
		codes, err := withURLs(base, codes.All())
		if err != nil {
			if got = "error"; !strings.Contains(err.Error(), "DOCS_URL=") {
				t.Errorf("%q: %v", base, err)
			}
		} else if codes[0].URL != "" {
			got = strings.TrimSuffix(codes[0].URL, codes[0].Family+".md#"+codes[0].Name)
		}
		if got != want {
			t.Errorf("%q gives %q, want %q", base, got, want)
		}
	}
}
