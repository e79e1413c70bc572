package envoy

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"xdspub/diag"
)

// The lines that Envoy 1.40.0 logs when it refuses a file: first the line of each resource, then the line of the
// file, which has the path only if Envoy could not read the file.
//
//	cds: cluster 'b' config rejected: cannot create an EDS cluster without an EDS config
//	Filesystem config update rejected: Error adding/updating cluster(s) b: cannot create …
//	Filesystem config update failure: in /xds/cds/cds.json, Unable to parse JSON as proto (…): {…}
var (
	resourceEntry = regexp.MustCompile(`(cds: cluster|lds: listener|eds: cluster|rds: route config|sds: secret|srds: scoped route config) '(.*?)' (?:config )?rejected: (?s:(.*))`)
	fileEntry     = regexp.MustCompile(`Filesystem config update (rejected: |failure: in )(?s:(.*))`)
	pathPrefix    = regexp.MustCompile(`^(.*?\.(?:json|yaml|yml|pb|pb_text)), (?s:(.*))`)
	constraint    = regexp.MustCompile(`Proto constraint validation failed \((.*)\)`)
	apiMention    = regexp.MustCompile(`^Error adding/updating ([a-z ]+\(s\))|^Unable to unpack as envoy\.[\w.]+\.(\w+): |failed \((\w+)ValidationError|^Unexpected ([A-Z]+) |^Unexpected resource name in (\w+)`)
	entryStart    = regexp.MustCompile(`^\[\d{4}-\d\d-\d\d `)
)

// apiNamed returns the API that a word of a message stands for; empty for none.
func apiNamed(word string) string {
	switch word {
	case "cluster(s)", "Cluster":
		return "CDS"
	case "listener(s)", "Listener":
		return "LDS"
	case "scoped route(s)", "ScopedRouteConfiguration":
		return "SRDS"
	case "RouteConfiguration", "RDS":
		return "RDS"
	case "ClusterLoadAssignment", "EDS":
		return "EDS"
	case "Secret", "SDS":
		return "SDS"
	case "Runtime", "RTDS":
		return "RTDS"
	case "TypedExtensionConfig", "ExtensionConfigDS":
		return "ECDS"
	}
	return ""
}

// ParseLog returns the refusals in a log, in their order. If a custom format does not mark the first line of an
// entry, ParseLog begins an entry at each line with a refusal.
func ParseLog(log string) []Refusal {
	var list []Refusal
	for _, entry := range entries(log) {
		if m := resourceEntry.FindStringSubmatch(entry); m != nil {
			api, _, _ := strings.Cut(m[1], ":")
			list = append(list, Refusal{API: strings.ToUpper(api), Resource: m[2], Message: reason(m[3])})
			continue
		}
		m := fileEntry.FindStringSubmatch(entry)
		switch {
		case m == nil:
		case strings.HasPrefix(m[1], "failure"):
			r := Refusal{Message: m[2]}
			if path := pathPrefix.FindStringSubmatch(m[2]); path != nil {
				r.File, r.Message = path[1], path[2]
			}
			r.Message = reason(r.Message)
			list = append(list, r)
		case len(list) > 0 && list[len(list)-1].Message != "" && strings.Contains(reason(m[2]), list[len(list)-1].Message):
			// This message summarizes the messages about the resources.
		default:
			list = append(list, Refusal{API: apiOf(m[2]), Message: reason(m[2])})
		}
	}
	return slices.CompactFunc(list, func(a, b Refusal) bool { return a == b })
}

// entries returns the entries of a log, each with all its lines. For JSON, it returns only the message.
func entries(log string) []string {
	var list []string
	var entry strings.Builder
	end := func() {
		if entry.Len() > 0 {
			list = append(list, entry.String())
			entry.Reset()
		}
	}
	for line := range strings.Lines(log) {
		text, whole := unwrap(line)
		if whole || entryStart.MatchString(text) || resourceEntry.MatchString(text) || fileEntry.MatchString(text) {
			end()
		}
		entry.WriteString(text)
	}
	end()
	return list
}

// unwrap returns the message of a line in a json_format; whole is true, because such a line is a whole entry. For a
// line without a refusal, text is empty. From other lines, unwrap removes the escapes of --log-format-escaped.
func unwrap(line string) (text string, whole bool) {
	var fields map[string]any
	if !strings.HasPrefix(line, "{") || json.Unmarshal([]byte(line), &fields) != nil {
		return unescape.Replace(line), false
	}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if text, ok := fields[key].(string); ok && (resourceEntry.MatchString(text) || fileEntry.MatchString(text)) {
			return text, true
		}
	}
	return "", true
}

var unescape = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\'`, "'", `\"`, `"`, `\\`, `\`)

// reason returns a message without Envoy's quotes of files, which may hold keys: Envoy quotes a whole
// unreadable file, and a whole message that breaks a constraint.
func reason(message string) string {
	if m := constraint.FindStringSubmatch(message); m != nil {
		message = m[1]
	}
	message, _, _ = strings.Cut(message, ": goo.gle/debug")
	message, _, _ = strings.Cut(message, "goo.gle/debug")
	for _, quotes := range []string{"Unable to convert YAML as JSON: ", "): {"} {
		if before, _, ok := strings.Cut(message, quotes); ok {
			message = before + strings.TrimRight(quotes, ": {")
		}
	}
	return diag.Hide(diag.ClipLine(message, diag.MaxText)) // ClipLine also makes equal the blanks that protobuf varies
}

// apiOf returns the API that a message about a file mentions; empty if it mentions none.
func apiOf(message string) string {
	for _, m := range apiMention.FindAllStringSubmatch(message, -1) {
		for _, word := range m[1:] {
			if api := apiNamed(word); api != "" {
				return api
			}
		}
	}
	return ""
}
