// Package baseline records known findings, so that only new findings count. A baseline is useful for a tree that
// still has findings, or after an update with new rules. Package baseline identifies findings by the fingerprints
// of package report.
//
//	known, err := baseline.Read("baseline.json")
//	findings = known.Left(findings, root)
package baseline

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"xdspub/diag"
	"xdspub/internal/safefile"
	"xdspub/report"
)

// form is the version of the form of a baseline file.
const form = 1

// MaxBytes is the size, in bytes, of the largest file that Read accepts.
const MaxBytes = 64 << 20

// Entry is a finding in the file. The Fingerprint identifies the finding; the other fields are for people.
type Entry struct {
	File        string        `json:"file"`
	Code        string        `json:"code"`
	Resource    diag.Resource `json:"resource"`
	Message     string        `json:"message"`
	Fingerprint string        `json:"fingerprint"`
}

// Baseline holds known findings.
type Baseline struct {
	entries []Entry
	known   map[string]bool // set to true when Left finds the fingerprint
}

// Read reads a file that Write has written. An error tells why the file can't be used.
func Read(path string) (*Baseline, error) {
	data, err := safefile.Read(path, MaxBytes)
	if err != nil {
		return nil, fmt.Errorf("read the baseline: %w", err)
	}
	entries, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s is not a baseline: %w: write it anew by --write-baseline", path, err)
	}
	b := &Baseline{entries: entries, known: make(map[string]bool, len(entries))}
	for _, e := range entries {
		b.known[e.Fingerprint] = false
	}
	return b, nil
}

// file is the content of a baseline file. Findings is not decoded, because it depends on Form.
type file struct {
	Form     *int            `json:"baseline"`
	Findings json.RawMessage `json:"findings"`
}

func parse(data []byte) (entries []Entry, err error) {
	var f file
	if err := decode(data, &f, false); err != nil {
		return nil, err
	}
	switch {
	case f.Form == nil:
		return nil, errors.New(`it has no "baseline"`)
	case *f.Form != form:
		return nil, fmt.Errorf("it has form %d, and this xdspub reads form %d", *f.Form, form)
	}
	if err := decode(data, &struct {
		file
		Findings *[]Entry `json:"findings"`
	}{Findings: &entries}, true); err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.Fingerprint == "" {
			return nil, errors.New("a finding has no fingerprint")
		}
	}
	return entries, nil
}

// decode decodes data, which must be exactly one JSON value. If strict is set, an unknown field is an error.
func decode(data []byte, into any, strict bool) error {
	d := json.NewDecoder(bytes.NewReader(data))
	if strict {
		d.DisallowUnknownFields()
	}
	if err := d.Decode(into); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return errors.New("the file is cut off")
		}
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more text follows the JSON object")
	}
	return nil
}

// Left returns the findings of a sorted list that the baseline does not have, by their Fingerprints. A finding of
// TooMany always stays. Left does not modify the list.
func (b *Baseline) Left(list diag.List, root *report.Root) (left diag.List) {
	for i, f := range report.Fingerprints(list, root) {
		if _, known := b.known[f]; known && list[i].Code != diag.TooMany.Name {
			b.known[f] = true
		} else {
			left = append(left, list[i])
		}
	}
	return left
}

// Gone returns the number of known findings that no call of Left has found. It counts findings in the files paths,
// and in files below the folders paths. Paths are relative to the root of the fingerprints.
func (b *Baseline) Gone(paths []string) (n int) {
	for _, e := range b.entries {
		if !b.known[e.Fingerprint] && slices.ContainsFunc(paths, func(path string) bool { return below(e.File, path) }) {
			n++
		}
	}
	return n
}

func below(file, path string) bool {
	return path == "." || file == path || strings.HasPrefix(file, strings.TrimSuffix(path, "/")+"/")
}

// Write writes the findings of sorted lists with their Fingerprints, one on each line. The order does not depend on
// positions in files. If a list is incomplete, Write returns an error and writes nothing.
func Write(w io.Writer, lists []diag.List, root *report.Root) error {
	var entries []Entry
	for _, list := range lists {
		for i, f := range report.Fingerprints(list, root) {
			d := list[i].Shown()
			if d.Code == diag.TooMany.Name {
				return errors.New("there are too many findings to list all of them, and so to write a baseline: correct some first")
			}
			path, _ := root.Path(d.File)
			entries = append(entries, Entry{path, d.Code, d.Resource, d.Message, f})
		}
	}
	slices.SortFunc(entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Resource.Type, b.Resource.Type),
			cmp.Compare(a.Resource.Name, b.Resource.Name), cmp.Compare(a.Message, b.Message), cmp.Compare(a.Fingerprint, b.Fingerprint))
	})
	entries = slices.Compact(entries)
	out := bytes.NewBufferString(fmt.Sprintf("{\n  \"baseline\": %d,\n  \"findings\": [", form))
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for i, e := range entries {
		if i > 0 {
			out.Truncate(out.Len() - 1) // the line break after the entry before
			out.WriteString(",")
		}
		out.WriteString("\n    ")
		if err := enc.Encode(e); err != nil {
			return err
		}
	}
	if len(entries) > 0 {
		out.WriteString("  ")
	}
	out.WriteString("]\n}\n")
	_, err := out.WriteTo(w)
	return err
}
