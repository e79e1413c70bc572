package main

import (
	"fmt"
	"net/url"
	"strings"

	"xdspub/cmd/codes"
	"xdspub/diag"
)

// docsURL is the address of the folder that holds this repository's docs/, such as the folder of a version on
// a forge; empty if the docs are not published. Only the linker sets docsURL (make dist DOCS_URL=https://…).
var docsURL string

// documented returns all codes, with the URLs of their pages.
func documented() ([]diag.Code, error) { return withURLs(docsURL, codes.All()) }

// withURLs sets the URL of each code to its page below base. If base is empty, withURLs changes nothing. An
// error means that base is not an absolute http or https URL of a folder.
func withURLs(base string, codes []diag.Code) ([]diag.Code, error) {
	if base == "" {
		return codes, nil
	}
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("this program was built with DOCS_URL=%q: use an address such as https://example.com/xdspub", base)
	}
	for i, c := range codes {
		page := u.JoinPath("docs", "rules", c.Family+".md")
		page.Fragment = strings.ToLower(c.Name)
		codes[i].URL = page.String()
	}
	return codes, nil
}
