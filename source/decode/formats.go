package decode

import (
	"regexp"

	"xdspub/source/settingsfile"
	"xdspub/source/syntax"
)

// Decode decodes the whole source. named has the files that resources name; nil leaves these files alone.
func (s *Source) Decode(named Files) *File {
	f := NewFile(s)
	d := &decoder{file: f, named: named}
	if s.Format == syntax.Other {
		if looksLikeXDS.Match(s.Data()) {
			d.report(s.Finding(codeIgnoredFile, syntax.FileRange(s.Name),
				"the file looks like xDS resources, but xdspub does not read this suffix",
				"rename it to .yaml, .json, .txtpb or .pb, or list it under ignore: in xdspub.yaml"))
		}
		return f
	}
	if s.Format != syntax.Binary && (tooMany(d) || invalidUTF8(d)) {
		f.Partial, f.ClientsUnknown = true, s.isSettings
		return f
	}
	if s.isSettings {
		var ok bool
		f.When, ok = settingsfile.ReadFolder(&s.Text, named.IsRoot(s.Name), d.report)
		f.ClientsUnknown = !ok
		if f.When != nil {
			f.Ignores = ignoreComments(s, nil)
		}
		return f
	}
	switch s.Format {
	case syntax.YAML:
		yamlSource(d)
	case syntax.JSON:
		jsonSource(d)
	case syntax.TextProto:
		textSource(d)
	case syntax.Binary:
		d.binarySource()
	}
	f.Ignores = ignoreComments(s, f.Resources)
	if !d.any && f.Findings.Len() == 0 {
		at := s.Point(0)
		if s.Format == syntax.Binary {
			at = syntax.FileRange(s.Name)
		}
		f.Partial = true
		message, help := s.emptiness()
		d.report(s.Finding(codeEmptyFile, at, message, help))
	}
	return f
}

// emptiness says what comes of a source that holds no document.
func (s *Source) emptiness() (message, help string) {
	message = "the file has no content"
	switch {
	case s.isBootstrap:
		return message + ": " + s.refusal(), "write the bootstrap into it"
	case s.byEnvoy && (s.Format == syntax.TextProto || s.Format == syntax.Binary):
		return message + ": " + s.of.WithoutAny(), responseHelp
	case s.byEnvoy:
		return message + ": " + s.refusal(), responseHelp
	}
	return message, "write a resource into it, or delete it"
}

var looksLikeXDS = regexp.MustCompile(`(?m)^\s*(?:- )?["']?@type["']?\s*:\s*["']?type\.googleapis\.com/envoy\.`)

// invalidUTF8 reports the first byte of the source that is not UTF-8.
func invalidUTF8(d *decoder) bool {
	f, is := d.file.Source.NotUTF8()
	if is {
		d.report(f)
	}
	return is
}
