package settings

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"xdspub/diag"
	"xdspub/render"
	"xdspub/watch/operator"
	"xdspub/xds/quorum"
)

// oneOfWords returns a law (setting.law) that accepts only the words.
func oneOfWords(words ...string) func(string) string {
	return func(text string) string {
		if slices.Contains(words, text) {
			return ""
		}
		return OneOf(words, text)
	}
}

// eachOf returns a law that accepts only lists of the words.
func eachOf(words ...string) func([]string) string {
	one := oneOfWords(words...)
	return func(list []string) string {
		for _, text := range list {
			if wants := one(text); wants != "" {
				return wants
			}
		}
		return ""
	}
}

// FormatNames returns the formats of published files.
func FormatNames() (names []string) {
	for _, f := range render.Formats {
		names = append(names, f.Name)
	}
	return names
}

func absoluteOrNone(path string) string {
	if path != "" && !strings.HasPrefix(path, "/") {
		return "write the absolute path of the output directory as Envoy sees it"
	}
	return ""
}

func aboveZero(d time.Duration) string {
	if d <= 0 {
		return "write a time above 0s"
	}
	return ""
}

func notNegative(d time.Duration) string {
	if d < 0 {
		return "write 0s or more"
	}
	return ""
}

func percent(n int) string {
	if n < 0 || n > 100 {
		return "write a percentage, 0 to 100"
	}
	return ""
}

// upToTrial is the law of --confirm-within.
func upToTrial(d time.Duration) string {
	if d < 0 || d > operator.MaxTrial {
		return fmt.Sprintf("write a time up to %s, or 0s for no limit", operator.MaxTrial)
	}
	return ""
}

// pollable is the law of --poll-interval.
func pollable(d time.Duration) string {
	if d != 0 && d < time.Millisecond {
		return "write 1ms or more, as Envoy wants it, or 0s to wait for events"
	}
	return ""
}

// mostEntries is the largest --history.
const mostEntries = 10_000

func upToEntries(n int) string {
	if n < 0 || n > mostEntries {
		return fmt.Sprintf("write a number from 0 to %d", mostEntries)
	}
	return ""
}

func twoOrMore(n int) string {
	if n < 2 {
		return "write 2 or more, because CDS and LDS need one each"
	}
	return ""
}

// NoQuorum is the --ack-quorum with which serve does not wait for clients.
const NoQuorum = "none"

func quorumOrNone(text string) string {
	if _, err := quorum.Parse(text); err != nil && text != NoQuorum {
		return QuorumForm(text)
	}
	return ""
}

// QuorumForm returns what to write instead of a text that is not a quorum.
func QuorumForm(given string) string {
	if meant := Nearest([]string{"all", "any"}, given); meant != "" {
		return fmt.Sprintf("did you mean %s?", meant)
	}
	return "use all, any, or a number from 1"
}

// severity is the law of --min-severity.
func severity(word string) string {
	var s diag.Severity
	if s.UnmarshalText([]byte(word)) != nil {
		return OneOf([]string{"error", "warning", "info"}, word)
	}
	return ""
}
