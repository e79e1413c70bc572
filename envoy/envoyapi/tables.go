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
	// pointsOf has the points by the message of their field.
	pointsOf map[protoreflect.FullName][]ExtensionPoint
	clusters []ClusterKind
	// optionsKeys are the keys of a cluster's protocol options, sorted.
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

// read reads a folder for Envoys of the releases from oldest to newest. The tables leave out rows that one of these
// releases lacks.
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
	// release is the oldest release of the Envoys, newest the newest.
	release, newest release
	err             error
}

// row is a line of a file: its words, at least as many as requested.
type row []string

func (r row) String() string { return strings.Join(r, " ") }

// rows returns the rows of a file that all releases of the reader have (read). Each row must have at least a number
// of words.
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

// older returns the rows that the folder lacks, and that all releases from oldest to newest have. If a release
// replaced a row, only oldest has to have the row.
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

// newer returns the names, which are the first words, of the rows that a release after r.release added, with this
// release. newer leaves out a name that had another row before.
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

// set returns list as a set.
func (r *reader) set(file string) map[protoreflect.FullName]bool {
	set := make(map[protoreflect.FullName]bool)
	for _, name := range list[protoreflect.FullName](r, file) {
		set[name] = true
	}
	return set
}

// list returns the first words of the rows of a file.
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

// flags sets the variables of the flags in words. Any other word is an error.
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

// fail keeps err if it is the first error.
func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}
