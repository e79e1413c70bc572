package hook

import (
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"regexp"
	"slices"
	"strings"

	"xdspub/diag"
	"xdspub/event"
)

// selection selects events by their names and levels. The zero selection selects all events of INFO and above.
type selection []string

// levels has the levels that a word selects, and "" those of the zero selection.
var levels = map[string][]string{"": {"INFO", "WARN", "ERROR"}, "warn": {"WARN", "ERROR"}, "error": {"ERROR"}}

// takes reports whether the selection has an event.
func (s selection) takes(k event.Kind) bool {
	if len(s) == 0 {
		s = selection{""}
	}
	return slices.ContainsFunc(s, func(word string) bool {
		return word == k.Name || slices.Contains(levels[word], k.Level.String())
	})
}

// isOwn reports whether package hook writes an event.
func isOwn(name string) bool {
	return slices.Contains([]string{
		event.KindOf(event.HookFailed{}).Name, event.KindOf(event.WebhookFailed{}).Name, event.KindOf(event.HookRecovered{}).Name,
	}, name)
}

// chosen matches names of events before the = of an option.
var chosen = regexp.MustCompile(`^[a-z-]+(,[a-z-]+)*$`)

// cut splits the text of an option, [NAME[,NAME…]=]REST.
func cut(text string) (s selection, rest string, err error) {
	names, rest, found := strings.Cut(text, "=")
	if !found || !chosen.MatchString(names) {
		return nil, text, nil
	}
	known := slices.DeleteFunc(event.Names(), isOwn)
	for word := range strings.SplitSeq(names, ",") {
		if _, ok := levels[word]; !ok && !slices.Contains(known, word) {
			return nil, "", unknown(word, known)
		}
		s = append(s, word)
	}
	return s, rest, nil
}

// unknown returns the error for a word that selects no event.
func unknown(word string, known []string) error {
	if isOwn(word) {
		return fmt.Errorf("no hook gets the event %s", word)
	}
	if meant := diag.NewCandidates(known).Nearest(word); meant != "" {
		return fmt.Errorf("no event has the name %s: did you mean %s?", word, meant)
	}
	return fmt.Errorf("no event has the name %s: use names of docs/logs.md, or warn or error for events of a level", word)
}

// Command is a program with its arguments, and selects the events for which the program runs.
type Command struct {
	selection
	path string
	args []string
}

// ParseCommand parses [NAME[,NAME…]=]CMD. CMD is a program and its arguments, separated by spaces. Quotes, ' or ",
// keep spaces. No other character has a meaning. The error says what to write instead.
func ParseCommand(text string) (Command, error) {
	s, rest, err := cut(text)
	if err != nil {
		return Command{}, err
	}
	words, err := split(rest)
	if err != nil {
		return Command{}, err
	}
	c, err := commandOf(words, "NAME=CMD or CMD")
	c.selection = s
	return c, err
}

// commandOf returns the Command of a program and its arguments. form is what to write instead of no program.
func commandOf(words []string, form string) (Command, error) {
	if len(words) == 0 || words[0] == "" {
		return Command{}, fmt.Errorf("write %s, a program and its arguments", form)
	}
	path, err := exec.LookPath(words[0])
	if err != nil {
		return Command{}, fmt.Errorf("no program: %w", err)
	}
	return Command{path: path, args: words[1:]}, nil
}

// split splits a command at spaces that are outside of quotes.
func split(text string) (words []string, err error) {
	var word strings.Builder
	var quote rune
	inWord := false
	for _, r := range text {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, inWord = r, true
		case r == ' ' || r == '\t' || r == '\n':
			if inWord {
				words = append(words, word.String())
			}
			word.Reset()
			inWord = false
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("the quote %c has no end", quote)
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, nil
}

// Webhook is a URL, and selects the events that the URL gets.
type Webhook struct {
	selection
	url    *url.URL
	format format
}

// ParseWebhook parses [NAME[,NAME…]=][slack+|alertmanager+]URL. The error says what to write instead, without the
// URL, which may hold a secret.
func ParseWebhook(text string) (Webhook, error) {
	s, rest, err := cut(text)
	if err != nil {
		return Webhook{}, err
	}
	parts := webhook.FindStringSubmatch(rest)
	if parts == nil {
		return Webhook{}, errors.New("write URL or NAME=URL, and URL as http://HOST/PATH or https://HOST/PATH, after slack+ or alertmanager+ for their formats")
	}
	f, ok := formats[parts[1]]
	u, err := url.Parse(parts[2])
	switch {
	case !ok:
		return Webhook{}, errors.New("the format before the + is slack or alertmanager")
	case err != nil, u.Hostname() == "":
		return Webhook{}, errors.New("write the URL as http://HOST/PATH or https://HOST/PATH")
	case u.Fragment != "":
		return Webhook{}, errors.New("leave out the # and what follows, which HTTP does not send")
	}
	return Webhook{s, u, f}, nil
}

// webhook matches a URL with its format.
var webhook = regexp.MustCompile(`^(?:([a-z]+)\+)?(https?://.+)$`)

// Shown returns the text of a webhook without what may be a secret: without user, password, path and query.
func Shown(text string) string {
	before, rest, found := strings.Cut(text, "://")
	if !found || strings.Contains(rest, "@") {
		return "…"
	}
	if end := strings.IndexAny(rest, "/?#\\"); end >= 0 {
		rest = rest[:end] + "/…"
	}
	return before + "://" + rest
}

// String returns scheme and host.
func (w Webhook) String() string { return w.url.Scheme + "://" + w.url.Host }
