package rules_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"xdspub/diag"
	"xdspub/validate"
	"xdspub/validate/rules"
)

// mostMessages is the largest number of different messages in the examples of a rule without Checks. More messages
// usually are separate decisions.
const mostMessages = 4

// values match the parts of messages that differ from finding to finding.
var values = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|[0-9]+`)

// checks compares the Checks of a rule with the findings in its examples. Each finding must name a declared check,
// and each check must have a finding. A rule with many messages and without Checks must be in
// testdata/one-check.txt, with the reason.
func checks(t *testing.T, rule *validate.Rule, found diag.List) {
	t.Helper()
	unseen, messages := make(map[string]bool), make(map[string]bool)
	for _, c := range rule.Checks {
		unseen[c.Name] = true
	}
	declared := diag.Names([]diag.Code{{Name: rule.Code, Checks: rule.Checks}})
	if len(rule.Checks) > 0 {
		declared = declared[1:]
	}
	for _, d := range found {
		if diag.CodeOf(d.Code) != rule.Code { // judge has reported it
			continue
		}
		_, check, _ := strings.Cut(d.Code, "/")
		delete(unseen, check)
		messages[values.ReplaceAllString(d.Message, "")] = true
		if !slices.Contains(declared, d.Code) {
			t.Errorf("%s: the rule does not declare %s", d.Message, d.Code)
		}
	}
	for check := range unseen {
		t.Errorf("no example has a finding of %s/%s", rule.Code, check)
	}
	switch reason, one := oneCheck(t)[rule.Code]; {
	case one && (reason == "" || len(rule.Checks) > 0 || len(messages) <= mostMessages):
		t.Errorf("testdata/one-check.txt: %s has no reason, has Checks, or needs none", rule.Code)
	case !one && len(rule.Checks) == 0 && len(messages) > mostMessages:
		t.Errorf("the rule has %d messages: give it Checks, or say in testdata/one-check.txt why they are one thing", len(messages))
	}
}

// oneCheck returns the rules in testdata/one-check.txt, with the reasons.
func oneCheck(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("testdata/one-check.txt")
	if err != nil {
		t.Fatal(err)
	}
	reasons := make(map[string]string)
	for line := range strings.Lines(string(text)) {
		if code, reason, _ := strings.Cut(strings.TrimSpace(line), ": "); code != "" && code[0] != '#' {
			reasons[code] = reason
		}
	}
	for code := range reasons {
		if !slices.ContainsFunc(rules.All, func(r *validate.Rule) bool { return r.Code == code }) {
			t.Errorf("testdata/one-check.txt: there is no rule %s", code)
		}
	}
	return reasons
}
