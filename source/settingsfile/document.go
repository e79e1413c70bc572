package settingsfile

import (
	"bytes"
	"encoding/json"

	"xdspub/diag"
	"xdspub/source/syntax"
)

// settingsDocument returns the single document of a settings file with its members by name. Both are nil for
// an empty file. ok is false after a syntax error.
func settingsDocument(s *syntax.Text, report func(...diag.Diagnostic)) (doc *syntax.Document, members map[string]json.RawMessage, ok bool) {
	docs := s.Documents()
	switch len(docs) {
	case 0:
		if at := directiveIn(s.Data()); at >= 0 {
			report(s.Finding(syntax.CodeSyntax, s.Point(at), "a line that begins with % is a directive of YAML, and no document follows", ""))
			return nil, nil, false
		}
		return nil, nil, true
	case 1:
	default:
		report(s.Finding(syntax.CodeUnknownDocument, docs[1].Point(0), "a settings file has one document, and here a second one begins", ""))
		return nil, nil, false
	}
	doc = docs[0]
	text, findings := doc.AsYAML().ToJSON()
	report(findings...)
	if len(findings) > 0 {
		return nil, nil, false
	}
	if members, ok = syntax.ObjectOf(text); !ok {
		report(s.Finding(syntax.CodeInvalidValue, s.Point(0), "a settings file has one setting a line, such as eds: inline", ""))
	}
	return doc, members, ok
}

// isEmpty reports whether a settings file has no setting and no comment, such as a file with --- alone. An editor may
// empty a file before it writes the file, and an empty file must not end a freeze. members are those of the document.
func isEmpty(s *syntax.Text, members map[string]json.RawMessage) bool {
	return len(members) == 0 && !bytes.ContainsRune(s.Data(), '#')
}

// empty returns the finding about an empty settings file.
func empty(s *syntax.Text) diag.Diagnostic {
	return s.Finding(syntax.CodeInvalidValue, s.Point(0), "the settings file has no setting, and may be half written: write a setting or a comment, or delete the file", "")
}

// directiveIn returns the offset of the first line with a YAML directive; -1 for none.
func directiveIn(text []byte) int {
	for at := 0; at < len(text); at += syntax.YAMLLine(text[at:]) {
		if text[at] == '%' {
			return at
		}
	}
	return -1
}
