package settings

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// kind says how values of a type are parsed, printed and compared.
type kind[T any] struct {
	name string
	// repeats means that an option may be repeated, and that parse gets all texts. Otherwise, the last text
	// counts.
	repeats bool
	// parse returns the value of the texts. Its error says what to write instead.
	parse func(texts []string) (T, error)
	text  func(T) string
	// compared returns the value as texts that do not depend on the working directory, for comparison with
	// another process.
	compared func(T) []string
	// ofList returns the value of a list in a settings file in the folder dir; nil if the value is not a list.
	ofList func(dir string, texts []string) T
	// below returns the path v of a settings file in the folder dir; nil if the value is not a path.
	below func(dir string, v T) T
	// form returns the schema of a value, or of an element of a list.
	form func(*setting[T]) Schema
	// def returns the default in a schema; nil for none.
	def func(*setting[T]) any
}

func last(texts []string) string { return texts[len(texts)-1] }

// advised returns v, and if err is not nil, an error with the text wants, which says what to write instead.
func advised[T any](v T, err error, wants string) (T, error) {
	if err != nil {
		return v, errors.New(wants)
	}
	return v, nil
}

func one[T any](text func(T) string) func(T) []string {
	return func(v T) []string { return []string{text(v)} }
}

func itself(text string) string { return text }

func firstText(texts []string) (string, error) { return last(texts), nil }

// The kinds of values.
var (
	boolean = kind[bool]{
		name: "true or false",
		parse: func(texts []string) (bool, error) {
			v, err := strconv.ParseBool(last(texts))
			return advised(v, err, "write true or false")
		},
		text:     strconv.FormatBool,
		compared: one(strconv.FormatBool),
		form:     func(*setting[bool]) Schema { return Schema{"type": "boolean"} },
		def:      func(r *setting[bool]) any { return r.byDefault },
	}
	count = kind[int]{
		name: "number",
		parse: func(texts []string) (int, error) {
			v, err := strconv.Atoi(last(texts))
			return advised(v, err, "write a whole number")
		},
		text:     strconv.Itoa,
		compared: one(strconv.Itoa),
		form:     countSchema,
		def:      func(r *setting[int]) any { return r.byDefault },
	}
	times = kind[time.Duration]{
		name:     "time",
		parse:    parseTime,
		text:     time.Duration.String,
		compared: one(time.Duration.String),
		form:     timeSchema,
		def: func(r *setting[time.Duration]) any {
			if r.defaultText != "" {
				return nil
			}
			return r.byDefault.String()
		},
	}
	text = kind[string]{
		name: "text", parse: firstText, text: itself, compared: one(itself), form: textSchema[string],
		def: func(r *setting[string]) any {
			if r.byDefault == "" {
				return nil
			}
			return r.byDefault
		},
	}
	filePath = kind[string]{
		name: "path", parse: firstText, text: itself, compared: one(absolute), below: from,
		form: func(*setting[string]) Schema { return Schema{"type": "string"} },
	}
	list = kind[[]string]{
		name: "list", repeats: true, parse: parseList, text: commas, compared: sorted, form: textSchema[[]string],
		ofList: func(_ string, texts []string) []string { return texts },
	}
	// wholeTexts is a list of texts that may have commas: each option, and a variable, is one text.
	wholeTexts = kind[[]string]{
		name: "list", repeats: true, parse: func(texts []string) ([]string, error) { return texts, nil }, text: commas, compared: sorted,
		form: textSchema[[]string], ofList: func(_ string, texts []string) []string { return texts },
	}
	// filePaths is a list of paths.
	filePaths = kind[[]string]{
		name: "list", repeats: true, parse: parseList, text: commas, compared: sorted, form: textSchema[[]string],
		ofList: func(dir string, texts []string) []string {
			for i, path := range texts {
				texts[i] = from(dir, path)
			}
			return texts
		},
	}
)

func parseTime(texts []string) (time.Duration, error) {
	text := last(texts)
	d, err := time.ParseDuration(text)
	if _, number := strconv.Atoi(text); number == nil {
		return advised(d, err, fmt.Sprintf("write the time with its unit: %[1]ss, %[1]sms or %[1]sm", text))
	}
	return advised(d, err, "write a time such as 500ms, 90s or 10m")
}

// parseList splits texts at commas, and returns all elements.
func parseList(texts []string) (all []string, err error) {
	for _, text := range texts {
		for element := range strings.SplitSeq(text, ",") {
			all = append(all, strings.TrimSpace(element))
		}
	}
	return all, nil
}

func commas(list []string) string { return strings.Join(list, ", ") }

func sorted(list []string) []string { return slices.Sorted(slices.Values(list)) }

// absolute returns the absolute path; empty for an empty path.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil && path != "" {
		return abs
	}
	return path
}

// from returns a path that is relative to the folder dir as a path that is relative to the working directory.
// from does not change an absolute or an empty path.
func from(dir, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}
