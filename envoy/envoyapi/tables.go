package envoyapi

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// tables are the files of a release's folder. The head of each file describes its lines.
type tables struct {
	absent     map[protoreflect.FullName]bool
	extensions extensionTable
	points     []ExtensionPoint
	// pointsOf has the points by the message that the field belongs to.
	pointsOf map[protoreflect.FullName][]ExtensionPoint
	clusters []ClusterKind
	// optionsKeys are those of protocol options.
	optionsKeys []string
	terminal    map[extensionKey]bool
	perRoute    map[protoreflect.FullName]protoreflect.FullName
	// fileFields has fields by their messages.
	fileFields    map[protoreflect.FullName][]protoreflect.Name
	optionalFiles map[protoreflect.FullName]bool

	uncheckedMessages, checkedPolicies, nanRefused map[protoreflect.FullName]bool
	optionalReferences, partialReferences          []protoreflect.FullName

	retryReasons, luaModules []string
	formatFields             map[protoreflect.FullName][]protoreflect.Name
	formatHeaders            map[protoreflect.FullName]bool
	eagerServices            []protoreflect.FullName
	formatCommands           FormatCommands
	celFunctions             CELFunctions

	matchers matcherTable

	onMissing map[protoreflect.FullName]OnMissing
	tls       TLSNames
}

// read reads a folder for the Envoys of an oldest release to a newest.
func read(folder fs.FS, oldest, newest release) (*tables, error) {
	r := reader{folder: folder, release: oldest, newest: newest}
	t := &tables{
		absent:     r.set("absent-types.txt"),
		extensions: r.extensions("extensions.txt"),
		points:     r.extensionPoints("extension-points.txt"),
		terminal:   r.terminalFilters("terminal-filters.txt"),
		perRoute:   r.perRouteTypes("per-route-types.txt"),

		fileFields:    r.fields("file-fields.txt"),
		optionalFiles: r.set("optional-files.txt"),

		uncheckedMessages:  r.set("unchecked-messages.txt"),
		checkedPolicies:    r.set("checked-policies.txt"),
		nanRefused:         r.set("nan-refused.txt"),
		optionalReferences: list[protoreflect.FullName](&r, "optional-references.txt"),
		partialReferences:  list[protoreflect.FullName](&r, "partial-references.txt"),

		retryReasons:  list[string](&r, "retry-on.txt"),
		luaModules:    list[string](&r, "lua-modules.txt"),
		formatFields:  r.fields("format-fields.txt"),
		formatHeaders: r.set("format-headers.txt"),
		eagerServices: list[protoreflect.FullName](&r, "eager-grpc-services.txt"),

		formatCommands: r.formatCommands("format-commands.txt", "generic-proxy-commands.txt"),
		celFunctions:   r.celFunctions("cel-functions.txt"),

		matchers: r.matchers("matchers.txt"),

		onMissing: r.onMissing("on-missing.txt"),
		tls:       r.tlsNames("tls-ciphers.txt", "tls-groups.txt", "tls-signatures.txt"),
	}
	t.pointsOf = pointsByMessage(t.points)
	t.optionsKeys = t.extensions.protocolOptionsKeys()
	t.clusters = r.clusterKinds("cluster-factories.txt", t.extensions)
	return t, r.err
}

func must(t *tables, err error) *tables {
	if err != nil {
		panic(err)
	}
	return t
}

// reader reads the files of a folder, and keeps the first error.
type reader struct {
	folder fs.FS
	// Rows newer than release, and rows that newest lacks, are left out.
	release, newest release
	err             error
}

// row is a line of a file: its words, at least as many as requested.
type row []string

func (r row) String() string { return strings.Join(r, " ") }

// rows returns the lines of a file except comments. Each line must have at least a number of words.
func (r *reader) rows(file string, least int) (rows []row) {
	text, err := fs.ReadFile(r.folder, file)
	if err != nil {
		r.fail(err)
		return nil
	}
	changes := newIn().rows[file]
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		words := row(strings.Fields(line))
		switch {
		case len(words) == 0, strings.HasPrefix(words[0], "#"):
		case len(words) < least:
			r.fail(fmt.Errorf("%s:%d: a line has at least %d words", file, n, least))
		case changes.came[words.String()] <= r.release:
			rows = append(rows, words)
		}
	}
	return append(rows, changes.older(r.release, r.newest)...)
}

// older returns the rows that the Envoys of an oldest release to a newest have beside those of the
// latest.
func (c rowChanges) older(oldest, newest release) (rows []row) {
	for _, left := range c.left {
		last := newest
		if left.replaced {
			last = oldest
		}
		if c.came[left.String()] <= oldest && last < left.by {
			rows = append(rows, left.row)
		}
	}
	return rows
}

// newer returns the first words of rows that a later release added, with the release. newer leaves out a name
// that had another row before.
func (r *reader) newer(file string) map[string]string {
	changes, newer := newIn().rows[file], make(map[string]string)
	for text, by := range changes.came {
		name, _, _ := strings.Cut(text, " ")
		had := func(left leftRow) bool { return left.row[0] == name }
		if by > r.release && !slices.ContainsFunc(changes.left, had) {
			newer[strings.TrimPrefix(name, "-")] = by.String()
		}
	}
	return newer
}

// set is list as a set.
func (r *reader) set(file string) map[protoreflect.FullName]bool {
	set := make(map[protoreflect.FullName]bool)
	for _, name := range list[protoreflect.FullName](r, file) {
		set[name] = true
	}
	return set
}

// list reads a file with a name in each line.
func list[Name ~string](r *reader, file string) (names []Name) {
	for _, words := range r.rows(file, 1) {
		names = append(names, Name(words[0]))
	}
	return names
}

// flag is an optional word of a line, with the variable that the word sets.
type flag struct {
	word string
	set  *bool
}

// flags sets what the words of a line say.
func (r *reader) flags(file string, words row, flags ...flag) {
	for _, word := range words {
		known := false
		for _, f := range flags {
			if f.word == word {
				*f.set, known = true, true
			}
		}
		if !known {
			r.fail(fmt.Errorf("%s: unknown word %q", file, word))
		}
	}
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}
