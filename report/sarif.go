package report

import (
	"cmp"
	"io"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"xdspub/diag"
)

const (
	sarifSchema = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
	sarifRoot   = "%SRCROOT%"
	// GitHub compares only the fingerprint of this name. Without it, GitHub computes a hash of the line.
	sarifFingerprint = "primaryLocationLineHash"
	// mostSARIFDescription is the largest number of characters of a description that GitHub shows.
	mostSARIFDescription = 1000
)

var sarifLevels = map[diag.Severity]string{diag.Error: "error", diag.Warning: "warning", diag.Info: "note"}

// writeSARIF writes a SARIF log, version 2.1.0, with one run.
func writeSARIF(w io.Writer, r *Report) error {
	rules, index := r.sarifRules()
	run := sarifRun{
		Tool:               sarifTool{sarifDriver{Name: "xdspub", Version: strings.TrimPrefix(r.Version, "v"), Rules: rules}},
		Invocations:        []sarifInvocation{{ExecutionSuccessful: true, ExitCode: r.ExitStatus}},
		OriginalURIBaseIDs: map[string]sarifBase{sarifRoot: {sarifMessage{"the root of the repository"}}},
		ColumnKind:         "unicodeCodePoints",
		Results:            []sarifResult{}, // null would mean a failed run
	}
	fingerprints := Fingerprints(r.Findings, r.Root)
	for i, d := range r.Findings {
		d = words(d)
		result := r.sarifResult(d)
		result.RuleIndex = index[d.Code]
		result.PartialFingerprints = map[string]string{sarifFingerprint: fingerprints[i]}
		run.Results = append(run.Results, result)
	}
	return writeJSON(w, sarifLog{Schema: sarifSchema, Version: "2.1.0", Runs: []sarifRun{run}})
}

// sarifRules returns the rules with findings, sorted, and maps the code of each rule to its index.
func (r *Report) sarifRules() (rules []sarifRule, index map[string]int) {
	index = make(map[string]int)
	for _, d := range r.Findings {
		index[diag.Printable(d.Code)] = 0
	}
	known := make(map[string]diag.Code, len(r.Codes))
	for _, c := range diag.WithSubCodes(r.Codes) {
		known[c.Name] = c
	}
	rules = []sarifRule{}
	for i, id := range slices.Sorted(maps.Keys(index)) {
		index[id] = i
		c, ok := known[id]
		if !ok { // GitHub needs a text
			c = diag.Code{Name: id, Doc: id}
		}
		rules = append(rules, sarifRule{
			ID: id, ShortDescription: sarifMessage{c.Summary()}, FullDescription: sarifMessage{sarifDescription(c)}, Help: sarifMessage{c.Doc}, HelpURI: c.URL,
			DefaultConfiguration: sarifConfiguration{sarifLevels[c.Severity]},
		})
	}
	return rules, index
}

// sarifDescription returns the reason in the Doc of a code as one paragraph.
func sarifDescription(c diag.Code) string {
	reason := strings.TrimSpace(strings.TrimPrefix(c.Doc, c.Summary()))
	return diag.ClipLine(cmp.Or(reason, c.Summary()), mostSARIFDescription)
}

func (r *Report) sarifResult(d diag.Diagnostic) sarifResult {
	place, placed := r.sarifPlace(diag.Range{Position: d.Position, End: d.End})
	where := ""
	if !placed {
		where, place = r.Root.place(d.Position), sarifPlace{ArtifactLocation: sarifFile{".", sarifRoot}}
	}
	if place.Region == nil || !placed { // GitHub needs a file and a line
		place.Region = &sarifRegion{StartLine: 1}
	}
	result := sarifResult{
		RuleID: d.Code, Level: sarifLevels[d.Severity],
		Locations: []sarifLocation{{PhysicalLocation: place, LogicalLocations: sarifField(d)}},
	}
	var placeless []diag.Related
	for _, other := range d.Related {
		place, placed := r.sarifPlace(diag.PointAt(other.Position))
		if !placed {
			placeless = append(placeless, other)
			continue
		}
		result.RelatedLocations = append(result.RelatedLocations, sarifLocation{PhysicalLocation: place, Message: &sarifMessage{other.Message}})
	}
	d.Related = placeless
	result.Message = sarifMessage{r.text(where, d)}
	for _, fix := range d.Fixes {
		if changes := r.sarifChanges(fix.Edits); len(changes) > 0 {
			result.Fixes = append(result.Fixes, sarifFix{sarifMessage{diag.Printable(fix.Title)}, changes, sarifSafety{fix.Safe}})
		}
	}
	return result
}

// sarifField returns the resource and the field of a finding.
func sarifField(d diag.Diagnostic) []sarifLogical {
	if d.Resource.Name == "" {
		return nil
	}
	full := d.Resource.Type + "/" + d.Resource.Name
	if d.Path != "" {
		full += "/" + d.Path
	}
	return []sarifLogical{{full, "member"}}
}

// sarifChanges returns the edits of a fix, grouped by file. It returns nil if an edit has no place in a file.
func (r *Report) sarifChanges(edits []diag.Edit) (changes []sarifChange) {
	for _, e := range edits {
		place, placed := r.sarifPlace(e.Range)
		if !placed || place.Region == nil {
			return nil
		}
		i := slices.IndexFunc(changes, func(c sarifChange) bool { return c.ArtifactLocation == place.ArtifactLocation })
		if i < 0 {
			i = len(changes)
			changes = append(changes, sarifChange{ArtifactLocation: place.ArtifactLocation})
		}
		changes[i].Replacements = append(changes[i].Replacements, sarifReplacement{*place.Region, sarifMessage{e.Text}})
	}
	return changes
}

// sarifPlace returns the place of a range. placed is false if the range is not in a file, such as in standard
// input.
func (r *Report) sarifPlace(at diag.Range) (p sarifPlace, placed bool) {
	file, placed := r.sarifFile(at.File)
	if at.Line > 0 {
		p.Region = &sarifRegion{StartLine: at.Line, EndLine: max(at.EndLine, at.Line)}
		if at.Column > 0 {
			p.Region.StartColumn, p.Region.EndColumn = at.Column, at.EndColumn
		}
	}
	p.ArtifactLocation = file
	return p, placed
}

// sarifFile returns the reference to a file: relative to the root or, for a file outside the root, an absolute URI.
// A relative reference must not lead out of the root. ok is false for standard input.
func (r *Report) sarifFile(file string) (f sarifFile, ok bool) {
	if path, inside := r.Root.Path(file); inside {
		return sarifFile{(&url.URL{Path: path}).String(), sarifRoot}, true
	}
	abs, err := filepath.Abs(file)
	if file == "" || file == diag.StandardInput || err != nil {
		return f, false
	}
	return sarifFile{URI: (&url.URL{Scheme: "file", Path: filepath.ToSlash(abs)}).String()}, true
}
