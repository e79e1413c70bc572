package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/reflect/protoregistry"
	"sigs.k8s.io/yaml"

	"xdspub/xds"
	_ "xdspub/xds/alltypes"
)

// unit is a configuration in the form that both programs get: a bootstrap.
type unit struct {
	// name is the file and, if the file holds several configurations, the number.
	name string
	text []byte
	// suffix is the file's suffix, by which Envoy chooses the parser.
	suffix string
	// roots are the directories that may hold the files which the configuration names.
	roots []string
}

func (u unit) sum() [sha256.Size]byte { return sha256.Sum256(append([]byte(u.suffix+"\n"), u.text...)) }

// gathered has the configurations of a directory.
type gathered struct {
	units []unit
	// left counts, by reason, the files without a configuration that can be judged.
	left map[string]int
}

const (
	maxFile = 4 << 20 // larger files are data
	// maxDepth bounds the nesting in which value looks for resources.
	maxDepth = 64
)

// gather returns the configurations in all files below a directory. Of equal configurations, it returns the first.
func gather(dir string) (gathered, error) {
	g := gathered{left: make(map[string]int)}
	seen := make(map[[sha256.Size]byte]bool)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() == ".git" {
			return filepath.SkipDir
		}
		if !d.Type().IsRegular() || readers[filepath.Ext(path)] == nil {
			return nil
		}
		if info, err := d.Info(); err != nil {
			return err
		} else if info.Size() > maxFile {
			g.left["too large"]++
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		f := file{left: g.left}
		readers[filepath.Ext(path)](&f, data)
		f.flush()
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		for i, u := range f.units {
			if u.name = filepath.ToSlash(name); len(f.units) > 1 {
				u.name += fmt.Sprintf("#%d", i+1)
			}
			u.roots = []string{filepath.Dir(path), dir}
			if sum := u.sum(); !seen[sum] {
				seen[sum] = true
				g.units = append(g.units, u)
			} else {
				g.left["the same as another"]++
			}
		}
		return nil
	})
	return g, err
}

// readers find the configurations in a file, by its suffix.
var readers = map[string]func(f *file, data []byte){
	".yaml": (*file).yaml, ".yml": (*file).yaml,
	".json": (*file).json,
	".pb":   (*file).binary,
	".rst":  (*file).manual, ".md": (*file).markdown,
	".pb_text": (*file).text, ".textproto": (*file).text, ".prototext": (*file).text, ".txtpb": (*file).text,
}

// file has the configurations of one file.
type file struct {
	units     []unit
	resources []resource
	left      map[string]int
}

// flush makes bootstraps of the resources.
func (f *file) flush() {
	for _, text := range wrap(f.resources) {
		f.units = append(f.units, unit{text: text, suffix: ".json"})
	}
	f.resources = nil
}

func (f *file) bootstrap(text []byte, suffix string) {
	f.units = append(f.units, unit{text: bytes.Clone(text), suffix: suffix})
}

// templates matches the marks of a template, which another program fills in before Envoy reads the file.
var templates = regexp.MustCompile(`\{\{|\{%|\$\{[A-Za-z_]|<%`)

// yaml reads documents, each a bootstrap or a value with resources.
func (f *file) yaml(data []byte) {
	for _, document := range regexp.MustCompile(`(?m)^---(?:[ \t].*)?$`).Split(string(data), -1) {
		if strings.TrimSpace(document) == "" {
			continue
		}
		var v any
		err := yaml.Unmarshal([]byte(document), &v)
		object, isObject := v.(map[string]any)
		switch {
		case err == nil && isObject && isBootstrap(object):
			f.bootstrap([]byte(document), ".yaml")
		case err == nil:
			f.value(v, 0)
		case templates.MatchString(document):
			f.left["a template"]++
		case regexp.MustCompile(`(?m)^(static_resources|dynamic_resources):`).MatchString(document): // broken YAML: both programs judge it
			f.bootstrap([]byte(document), ".yaml")
		default:
			f.left["not YAML"]++
		}
	}
}

func (f *file) json(data []byte) {
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		f.left["not JSON"]++
		return
	}
	if object, ok := v.(map[string]any); ok && isBootstrap(object) {
		f.bootstrap(data, ".json")
		return
	}
	f.value(v, 0)
}

func (f *file) binary(data []byte) { f.bootstrap(data, ".pb") }

// protoMessage matches the comment by which a text proto names its type.
var protoMessage = regexp.MustCompile(`(?m)^#\s*proto-message:\s*([\w.]+)`)

// text reads a bootstrap, or a message of the type that a comment names.
func (f *file) text(data []byte) {
	m := protoMessage.FindSubmatch(data)
	if m == nil || string(m[1]) == string(xds.Bootstrap.Message) {
		f.bootstrap(data, ".pb_text")
		return
	}
	mt, err := protoregistry.GlobalTypes.FindMessageByURL(xds.URLPrefix + string(m[1]))
	if err != nil {
		f.left["text of a message that is not of the API"]++
		return
	}
	message := mt.New().Interface()
	if err := prototext.Unmarshal(data, message); err != nil {
		f.left["text that can't be read"]++
		return
	}
	encoded, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(message)
	var object map[string]any
	if err != nil || json.Unmarshal(encoded, &object) != nil {
		f.left["text that can't be read"]++
		return
	}
	f.typed(string(m[1]), object)
}

// manual reads the code blocks of Envoy's own manual.
func (f *file) manual(data []byte) {
	lines := strings.Split(string(data), "\n")
	directive := regexp.MustCompile(`^(\s*)\.\. (?:validated-)?code-block:: *(?:yaml|json)\s*$`)
	for i := 0; i < len(lines); i++ {
		m := directive.FindStringSubmatch(lines[i])
		if m == nil {
			continue
		}
		indent, typeName := m[1]+"  ", ""
		var body []string
		for i++; i < len(lines) && (strings.TrimSpace(lines[i]) == "" || strings.HasPrefix(lines[i], indent)); i++ {
			line := strings.TrimPrefix(lines[i], indent)
			if option := regexp.MustCompile(`^\s*:([\w-]+):\s*(\S*)`).FindStringSubmatch(line); option != nil && len(body) == 0 {
				if option[1] == "type-name" {
					typeName = option[2]
				}
				continue
			}
			if len(body) > 0 || strings.TrimSpace(line) != "" {
				body = append(body, line)
			}
		}
		i--
		f.block(strings.Join(body, "\n"), typeName)
	}
}

// markdown reads the fenced blocks of YAML and JSON.
func (f *file) markdown(data []byte) {
	for _, m := range regexp.MustCompile("(?ms)^```(?:yaml|json|yml)\\s*?$\n(.*?)^```").FindAllSubmatch(data, -1) {
		f.block(string(m[1]), "")
	}
}

// block reads a code block of a manual, independently of other blocks.
func (f *file) block(text, typeName string) {
	if typeName == "" || typeName == string(xds.Bootstrap.Message) {
		f.yaml([]byte(text))
	} else {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(text), &object); err != nil {
			f.left["not YAML"]++
			return
		}
		f.typed(typeName, object)
	}
	f.flush()
}

// isBootstrap reports whether an object is meant as a bootstrap.
func isBootstrap(object map[string]any) bool {
	for _, key := range []string{"static_resources", "staticResources", "dynamic_resources", "dynamicResources"} {
		if _, ok := object[key]; ok {
			return true
		}
	}
	return len(object) > 0 && holdsOnly(object, string(xds.Bootstrap.Message))
}

// holdsOnly reports whether all members of an object are fields of a message.
func holdsOnly(object map[string]any, message string) bool {
	mt, err := protoregistry.GlobalTypes.FindMessageByURL(xds.URLPrefix + message)
	if err != nil {
		return false
	}
	fields := mt.Descriptor().Fields()
	for key := range object {
		if key != "@type" && fields.ByTextName(key) == nil && fields.ByJSONName(key) == nil {
			return false
		}
	}
	return true
}

// value looks for resources in a value, however deep.
func (f *file) value(v any, depth int) {
	if depth > maxDepth {
		return
	}
	switch v := v.(type) {
	case string: // as in a ConfigMap
		if strings.Contains(v, "static_resources:") || strings.Contains(v, "@type") && strings.Contains(v, "\n") {
			f.yaml([]byte(v))
		}
	case []any:
		for _, element := range v {
			f.value(element, depth+1)
		}
	case map[string]any:
		if depth > 0 && isBootstrap(v) {
			if text, err := json.Marshal(v); err == nil {
				f.bootstrap(text, ".json")
			}
			return
		}
		if url, ok := v["@type"].(string); ok && f.typed(url[strings.LastIndexByte(url, '/')+1:], v) {
			return
		}
		if message := guess(v); message != "" && f.typed(message, v) {
			return
		}
		for _, key := range sortedKeys(v) {
			f.value(v[key], depth+1)
		}
	}
}

// typed adds a message of a known type to the file, and reports whether a bootstrap has a place for the message.
func (f *file) typed(message string, object map[string]any) bool {
	if message == string(xds.Bootstrap.Message) {
		text, err := json.Marshal(object)
		if err != nil {
			return false
		}
		f.bootstrap(text, ".json")
		return true
	}
	r := resource{message, object}
	if r.place() == nil {
		return false
	}
	f.resources = append(f.resources, r)
	return true
}

func sortedKeys(object map[string]any) []string {
	keys := make([]string, 0, len(object))
	for key := range object {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
