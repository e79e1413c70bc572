package syntax

import (
	"bytes"
	"fmt"
	"regexp"
)

// foreignTexts are the kinds of text that stand in files of a tree by mistake, known by their
// first line that is neither empty nor a comment. The first that matches wins.
var foreignTexts = []struct {
	first *regexp.Regexp
	is    Format // the right format of the text, if readable
	what  string
}{
	{regexp.MustCompile(`(?i)^<(?:!doctype html|html|head|body)\b`), Other, "an HTML page"},
	{regexp.MustCompile(`^<(?:\?xml|[A-Za-z][\w:.-]*[\s/>])`), Other, "XML"},
	{regexp.MustCompile(`^-----BEGIN [A-Z ]+-----`), Other, "a certificate or key in PEM"},
	{regexp.MustCompile(`^#!`), Other, "a script"},
	{regexp.MustCompile(`^(?:syntax|edition)\s*=\s*"`), Other, "a .proto file, which defines messages"},
	{regexp.MustCompile(`^(?:export\s+)?[A-Z][A-Z0-9_]*=`), Other, "a list of environment variables (.env)"},
	{regexp.MustCompile(`^(?:\[\[?[\w."' -]+\]\]?|[\w.-]+\s*=\s*\S.*)$`), Other, "TOML or INI"},
	{regexp.MustCompile(`^(?:(?:resource|variable|provider|module|output|data)\s+(?:"[^"]*"\s*)+|terraform\s*|locals\s*)\{`), Other, "a module of Terraform"},
	{regexp.MustCompile(`^(?:(?:http|events|server|stream|upstream\s+\S+)\s*\{|(?:user|worker_processes|include|listen)\s+[^:]*;)`), Other, "a configuration of nginx"},
	{regexp.MustCompile(`^(?:FROM|ARG)\s+\S+`), Other, "a Dockerfile"},
	{regexp.MustCompile(`^(?:global|defaults|frontend\s+\S+|backend\s+\S+)$`), Other, "a configuration of HAProxy"},
	{regexp.MustCompile(`^package\s+\w+;?$`), Other, "source code"},
	{regexp.MustCompile(`^[a-z_]+\s*(?:\{|:\s*<)`), TextProto, "a text proto"},
	{regexp.MustCompile(`^\{\s*(?:$|["'}])`), JSON, "JSON"},
	{regexp.MustCompile(`^(?:---(?:\s|$)|- |["']?[@\w.-]+["']?:(?:\s|$))`), YAML, "YAML"},
}

// yamlOnly matches a first line of YAML that no text proto has.
var yamlOnly = regexp.MustCompile(`^(?:---|- |["'][@\w.-]+["']:|[\w.-]+:$)`)

// ForeignText returns the mistake of a text of another kind than the file's suffix. ForeignText is called only
// for a text that can't be read by its suffix.
func (d *Document) ForeignText() *mistake {
	at, first := firstLine(d.Text)
	for _, kind := range foreignTexts {
		if !kind.first.Match(first) {
			continue
		}
		m := &mistake{At: Span{at, at + len(first)}, Message: fmt.Sprintf("the file is %s", kind.what)}
		switch {
		case kind.is == YAML && d.source.Format == TextProto && !yamlOnly.Match(first):
			return nil // both begin with name: value
		case kind.is == d.source.Format || kind.is == JSON && d.source.Format == YAML:
			return nil
		case d.source.reader.OnlyJSON():
			m.Message, m.Help = m.Message+", and it has to be JSON", "write it as JSON"
		case kind.is == Other:
			m.Message += ", and no configuration of Envoy"
			m.Help, m.isForeign = d.source.reader.Removal(), true
		default:
			m.Message += ", and its suffix says " + d.source.Format.Row().word
			if m.Help = "call the file …" + kind.is.Row().suffixes[0]; d.source.reader.ByEnvoy() {
				m.Help = "Envoy decides by the suffix: " + m.Help
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
		line := bytes.TrimSpace(text[at : at+min(size, LongLine)])
		if len(line) > 0 && (line[0] != '#' || at == 0 && bytes.HasPrefix(line, []byte("#!"))) {
			return at + bytes.Index(text[at:at+size], line[:1]), line
		}
		at += size
	}
	return 0, nil
}
