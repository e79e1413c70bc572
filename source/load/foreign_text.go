package load

import (
	"bytes"
	"fmt"
	"regexp"
)

// foreignTexts are the kinds of text that stand in files of a tree by mistake, known by their
// first line that is neither empty nor a comment. The first that matches wins.
var foreignTexts = []struct {
	first *regexp.Regexp
	is    format // what a file of such a text should be called, if it can be read at all
	what  string
}{
	{regexp.MustCompile(`(?i)^<(?:!doctype html|html|head|body)\b`), formatOther, "an HTML page"},
	{regexp.MustCompile(`^<(?:\?xml|[A-Za-z][\w:.-]*[\s/>])`), formatOther, "XML"},
	{regexp.MustCompile(`^-----BEGIN [A-Z ]+-----`), formatOther, "a certificate or key in PEM"},
	{regexp.MustCompile(`^#!`), formatOther, "a script"},
	{regexp.MustCompile(`^(?:syntax|edition)\s*=\s*"`), formatOther, "a .proto file, which defines messages"},
	{regexp.MustCompile(`^(?:export\s+)?[A-Z][A-Z0-9_]*=`), formatOther, "a list of environment variables (.env)"},
	{regexp.MustCompile(`^(?:\[\[?[\w."' -]+\]\]?|[\w.-]+\s*=\s*\S.*)$`), formatOther, "TOML or INI"},
	{regexp.MustCompile(`^(?:(?:resource|variable|provider|module|output|data)\s+(?:"[^"]*"\s*)+|terraform\s*|locals\s*)\{`), formatOther, "a module of Terraform"},
	{regexp.MustCompile(`^(?:(?:http|events|server|stream|upstream\s+\S+)\s*\{|(?:user|worker_processes|include|listen)\s+[^:]*;)`), formatOther, "a configuration of nginx"},
	{regexp.MustCompile(`^(?:FROM|ARG)\s+\S+`), formatOther, "a Dockerfile"},
	{regexp.MustCompile(`^(?:global|defaults|frontend\s+\S+|backend\s+\S+)$`), formatOther, "a configuration of HAProxy"},
	{regexp.MustCompile(`^package\s+\w+;?$`), formatOther, "source code"},
	{regexp.MustCompile(`^[a-z_]+\s*(?:\{|:\s*<)`), formatText, "a text proto"},
	{regexp.MustCompile(`^\{\s*(?:$|["'}])`), formatJSON, "JSON"},
	{regexp.MustCompile(`^(?:---(?:\s|$)|- |["']?[@\w.-]+["']?:(?:\s|$))`), formatYAML, "YAML"},
}

// yamlOnly matches a first line of YAML that no text proto has.
var yamlOnly = regexp.MustCompile(`^(?:---|- |["'][@\w.-]+["']:|[\w.-]+:$)`)

// foreignText is the mistake of a text that is of another kind than the file's suffix says. It is
// asked only where the text can't be read as that.
func (d *textDocument) foreignText() *mistake {
	at, first := firstLine(d.text)
	for _, kind := range foreignTexts {
		if !kind.first.Match(first) {
			continue
		}
		m := &mistake{at: span{at, at + len(first)}, message: fmt.Sprintf("the file is %s", kind.what)}
		switch {
		case kind.is == formatYAML && d.source.format == formatText && !yamlOnly.Match(first):
			return nil // both begin with name: value
		case kind.is == d.source.format || kind.is == formatJSON && d.source.format == formatYAML:
			return nil
		case d.source.reader.OnlyJSON():
			m.message, m.help = m.message+", and it has to be JSON", "write it as JSON"
		case kind.is == formatOther:
			m.message += ", and no configuration of Envoy"
			m.help, m.isForeign = d.source.reader.Removal(), true
		default:
			m.message += ", and its suffix says " + d.source.format.row().word
			if m.help = "call the file …" + kind.is.row().suffixes[0]; d.source.reader.ByEnvoy() {
				m.help = "Envoy decides by the suffix: " + m.help
			}
		}
		return m
	}
	return nil
}

// firstLine is the first line of a text that is neither empty nor a comment, and where it stands.
func firstLine(text []byte) (at int, line []byte) {
	for at < len(text) {
		size := bytes.IndexByte(text[at:], '\n') + 1
		if size == 0 {
			size = len(text) - at
		}
		line := bytes.TrimSpace(text[at : at+min(size, longLine)])
		if len(line) > 0 && (line[0] != '#' || at == 0 && bytes.HasPrefix(line, []byte("#!"))) {
			return at + bytes.Index(text[at:at+size], line[:1]), line
		}
		at += size
	}
	return 0, nil
}
