package settings

import (
	"fmt"
	"strings"

	"xdspub/diag"
	"xdspub/report"
)

// quiet returns the row of --quiet.
func quiet() Row {
	return &setting[bool]{about: about{name: "quiet", short: "q", group: GroupPrint, usage: "print only errors, and log only warnings and errors"},
		kind: boolean, into: func(s *Settings) *Value[bool] { return &s.Quiet }}
}

// logFormat returns the row of --log-format.
func logFormat() Row {
	return &setting[string]{about: about{name: "log-format", group: GroupPrint, usage: "log as `text|json|logfmt`, one line an event; text and logfmt are the same"},
		kind: text, byDefault: "text", law: oneOfWords("text", "json", "logfmt"), into: func(s *Settings) *Value[string] { return &s.LogFormat }}
}

// LogLevels are the values of --log-level, in ascending order.
var LogLevels = []string{"debug", "info", "warn", "error"}

// logLevel returns the row of --log-level.
func logLevel() Row {
	return &setting[string]{about: about{name: "log-level", group: GroupPrint,
		usage: "log events of the level `" + strings.Join(LogLevels, "|") + "` and above; can't be combined with --quiet"},
		kind: text, byDefault: "info", law: oneOfWords(LogLevels...), into: func(s *Settings) *Value[string] { return &s.LogLevel }}
}

// MostOnTerminal is the largest number of findings that a terminal shows without --max-findings.
const MostOnTerminal = 100

func maxFindings() Row {
	return &setting[int]{
		about: about{name: "max-findings", group: GroupPrint, defaultText: fmt.Sprintf("%d on a terminal, else all, but some of many "+
			"similar ones", MostOnTerminal),
			usage: "print at most `N` findings as text, errors first, and count the rest; 0 prints all; a file named by --output has all"},
		kind: count, now: true,
		law: func(n int) string {
			if n < 0 {
				return "write 0 for all, or more"
			}
			return ""
		},
		complain: func(n int, wants string) error { return usagef("invalid --max-findings %d: %s", n, wants) },
		into:     func(s *Settings) *Value[int] { return &s.MaxFindings },
	}
}

// The values of --color.
const (
	ColorAuto   = "auto"
	ColorAlways = "always"
	ColorNever  = "never"
)

func color() Row {
	words := []string{ColorAuto, ColorAlways, ColorNever}
	return &setting[string]{
		about: about{name: "color", group: GroupPrint,
			usage: "mark findings " +
				"with colours: `" + strings.Join(words, "|") + "`; auto: on a terminal, unless NO_COLOR or CLICOLOR_FORCE " +
				"is set; a file named by --output has none"},
		kind: text, byDefault: ColorAuto, now: true, law: oneOfWords(words...),
		into: func(s *Settings) *Value[string] { return &s.Color },
	}
}

func minSeverity() Row {
	return &setting[string]{
		about: about{name: "min-severity", group: GroupPrint,
			usage: "leave findings below `error|warning|info` out of all reports; the exit status and the counts stay"},
		kind: text, byDefault: diag.Info.String(), now: true, law: severity,
		complain: func(word, wants string) error { return usagef("invalid --min-severity %q: %s", word, wants) },
		into:     func(s *Settings) *Value[string] { return &s.MinSeverity },
	}
}

// reportFormat returns the row of --format of validate. The row has no variable, because XDSPUB_FORMAT is the
// format of published files.
func reportFormat() Row {
	return &setting[[]string]{
		about: about{name: "format", group: GroupPrint, noVariable: true,
			usage: "print findings as `" + strings.Join(ReportFormats(), "|") + "`; if it is repeated, all but one need an --output behind them"},
		kind: list, byDefault: []string{"text"}, into: func(s *Settings) *Value[[]string] { return &s.ReportFormat },
	}
}

// ReportFormats returns the names of the formats of findings.
func ReportFormats() []string {
	names := []string{"text", "json"}
	for _, f := range report.Formats {
		names = append(names, f.Name)
	}
	return names
}
