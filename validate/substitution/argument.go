package substitution

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"xdspub/validate/cel"
)

// headers checks the argument of REQ and similar commands: a header name, or two header names with a question mark
// between them.
func headers(c call) *Fault {
	names := strings.Split(c.arg, "?")
	if len(names) > 2 {
		return &Fault{Message: "more than one alternative header", Help: "write one header, or two as in %" + c.name + "(x-first?x-second)%"}
	}
	for _, name := range names {
		if !isHeaderName(name) {
			return &Fault{Message: fmt.Sprintf("%q is not a valid header name", name), Help: "write a header name of letters, digits and !#$&'*+-.^_`|~"}
		}
	}
	return nil
}

// isHeaderName reports whether Envoy accepts a header name. Envoy accepts the empty name and pseudo-headers such as
// :path.
func isHeaderName(name string) bool {
	token, pseudo := strings.CutPrefix(name, ":")
	if pseudo && token == "" {
		return false
	}
	return !strings.ContainsFunc(token, func(r rune) bool {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
			return false
		}
		return !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	})
}

// option checks that an argument is empty or one of the words.
func option(arg string, words []string) *Fault {
	if arg == "" || slices.Contains(words, arg) {
		return nil
	}
	return &Fault{Message: fmt.Sprintf("unknown option %q", arg), Help: "use " + strings.Join(words, " or ") + ", in capitals"}
}

// options checks an argument of one word, or of two words with a colon between them. Either word may be empty.
// Envoy ignores the text after a second colon.
func options(first, second []string) func(call) *Fault {
	return func(c call) *Fault {
		words := strings.Split(c.arg, ":")
		if f := option(words[0], first); f != nil || len(words) == 1 {
			return f
		}
		return option(words[1], second)
	}
}

// xfccKey checks that the argument is one of the keys of x-forwarded-client-cert. Case does not matter.
func xfccKey(keys []string) func(call) *Fault {
	return func(c call) *Fault {
		if slices.Contains(keys, strings.ToLower(c.arg)) {
			return nil
		}
		return &Fault{Message: fmt.Sprintf("unknown key %q of x-forwarded-client-cert", c.arg), Help: "use one of " + strings.Join(keys, ", ")}
	}
}

// duration checks START:END or START:END:PRECISION. START and END may be any words, because a filter can record
// times of its own.
func duration(c call) *Fault {
	parts := strings.Split(c.arg, ":")
	switch {
	case len(parts) < 2 || len(parts) > 3:
		return &Fault{Message: "the argument is not START:END or " +
			"START:END:PRECISION", Help: "write an argument as in %COMMON_DURATION(DS_RX_BEG:DS_TX_END:us)%"}
	case len(parts) == 3 && !slices.Contains([]string{"ms", "us", "ns"}, parts[2]):
		return &Fault{Message: fmt.Sprintf("unknown precision %q", parts[2]), Help: "use ms, us or ns"}
	}
	return nil
}

// metadata checks that the argument begins with a type of metadata. More text may follow after a colon.
func metadata(types []string) func(call) *Fault {
	return func(c call) *Fault {
		kind, _, _ := strings.Cut(c.arg, ":")
		if slices.Contains(types, kind) {
			return nil
		}
		return &Fault{Message: fmt.Sprintf("unknown type of metadata %q", kind), Help: "use one of " + strings.Join(types, ", ")}
	}
}

// filterState checks KEY, KEY:PLAIN, KEY:TYPED or KEY:FIELD:NAME.
func filterState(c call) *Fault {
	parts := append(strings.SplitN(c.arg, ":", 4), "", "")
	key, kind, field := parts[0], parts[1], parts[2]
	const help = "write KEY, KEY:PLAIN, KEY:TYPED or KEY:FIELD:NAME"
	switch {
	case key == "":
		return &Fault{Message: "the key of the filter state is missing", Help: help}
	case kind != "" && kind != "PLAIN" && kind != "TYPED" && kind != "FIELD":
		return &Fault{Message: fmt.Sprintf("unknown filter state format %q", kind), Help: help}
	case kind == "FIELD" && field == "":
		return &Fault{Message: "FIELD needs the name of a field", Help: help}
	case kind != "FIELD" && field != "":
		return &Fault{Message: "a field name needs FIELD", Help: help}
	}
	return nil
}

func celExpression(c call) *Fault {
	if c.x.NoCEL {
		return &Fault{Message: "Envoy crashes on CEL in this field", Help: "use another command", Crash: true}
	}
	o := c.x.CEL
	o.Functions = c.of.Functions
	if err := cel.Check(c.arg, o); err != nil {
		return &Fault{Message: err.Error()}
	}
	return nil
}

// timeNewline matches the directives for a line break in a time format.
var timeNewline = regexp.MustCompile(`%[-_0^#]*[1-9]*(E|O)?n`)

func timeFormat(c call) *Fault {
	if timeNewline.MatchString(c.arg) {
		return &Fault{Message: "the time format contains a line break, %n", Help: "remove it"}
	}
	return nil
}

// maskLength checks an argument that is a number of bits: Envoy prints an address masked to this length.
func maskLength(c call) *Fault {
	if n, err := strconv.Atoi(c.arg); c.arg == "" || err == nil && 0 <= n && n <= 128 {
		return nil
	}
	return &Fault{Message: fmt.Sprintf("%q is not a valid prefix length, and "+
		"masks no address", c.arg), Help: "write a number up to 32 or, for IPv6, 128", Taken: true}
}

func fileContent(c call) *Fault {
	if n := strings.Count(c.arg, ":"); c.arg == "" || n > 1 {
		return &Fault{Message: "the argument is not PATH or PATH:WATCHED_DIRECTORY"}
	}
	return nil
}

func secret(c call) *Fault {
	if slices.Contains(c.x.Secrets, c.arg) {
		return nil
	}
	return &Fault{Message: fmt.Sprintf("the formatter has no secret %q", c.arg), Help: "add it to secret_configs"}
}
