// Package waves says which machines of a fleet get a new snapshot first.
//
//	p, err := waves.Plan{{Label: "tier=canary"}, {Percent: 10}}.Checked()
//	first := p.Of(waves.Machine{Name: "m1", Labels: "tier=canary"}) // 0, the first wave
//
// A machine belongs to the first wave that takes the machine. The last wave of a checked Plan takes all machines.
package waves

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	// Most bounds the waves of a Plan.
	Most = 20
	// MostTargets bounds the targets of a wave.
	MostTargets = 20
	// MaxBake bounds the bake time of a wave.
	MaxBake = 7 * 24 * time.Hour
	// MaxSize bounds a Plan as JSON in bytes, because each machine reads it.
	MaxSize = 6 << 10
	// MaxText bounds a name and a label in bytes. maxLabels bounds all labels of a machine in bytes.
	MaxText   = 100
	maxLabels = 1000
	// LabelPattern matches a label.
	LabelPattern = `^[A-Za-z0-9][A-Za-z0-9_./-]*=[A-Za-z0-9_./-]*$`
	// NamePattern matches the name of a wave.
	NamePattern = `^[A-Za-z0-9][A-Za-z0-9_. -]*$`
)

// Wave is a part of a fleet. A machine of the wave fits Targets, Label and Percent. An empty field fits all machines.
type Wave struct {
	Name string `json:"name,omitempty"`
	// Targets are the targets of the machines; empty for all targets.
	Targets []string `json:"targets,omitempty"`
	// Label is a label of the machines, KEY=VALUE.
	Label string `json:"label,omitempty"`
	// Percent is the percentage of all machines, chosen by the hashes of their names. The machines of a smaller Percent
	// are among those of a larger Percent. So after a wave of 10, a wave of 50 adds four tenths of the machines.
	Percent int `json:"percent,omitempty"`
	// Quorum is the percentage of the answering machines that must acknowledge.
	Quorum int `json:"quorum"`
	// Bake is how long the wave waits after its quorum.
	Bake time.Duration `json:"bake"`
}

// Plan has the waves of a rollout, the first wave first.
type Plan []Wave

// Machine is a machine of a fleet. A Machine without a Name is in no wave.
type Machine struct {
	Target, Name string
	Labels       string // as Labels returns them
}

// Of returns the index of the wave of a machine; len(p) for none.
func (p Plan) Of(m Machine) int {
	if i := slices.IndexFunc(p, func(w Wave) bool { return w.takes(m) }); i >= 0 && m.Name != "" {
		return i
	}
	return len(p)
}

// takes reports whether the wave takes a machine, if no earlier wave does.
func (w Wave) takes(m Machine) bool {
	return w.In(m.Target) && (w.Label == "" || slices.Contains(strings.Split(m.Labels, ","), w.Label)) &&
		(w.Percent == 0 || hundredth(m.Name) < w.Percent)
}

// In reports whether the wave takes machines of a target.
func (w Wave) In(target string) bool {
	return len(w.Targets) == 0 || slices.Contains(w.Targets, target)
}

// hundredth returns a number from 0 to 99, which depends on the name alone.
func hundredth(name string) int {
	sum := sha256.Sum256([]byte(name))
	return int(binary.BigEndian.Uint64(sum[:8]) % 100)
}

// String describes the machines of the wave, such as "tier=canary" or "10 %".
func (w Wave) String() string {
	if w.Name != "" {
		return w.Name
	}
	var parts []string
	if len(w.Targets) > 0 {
		parts = append(parts, strings.Join(w.Targets, ", "))
	}
	if w.Label != "" {
		parts = append(parts, w.Label)
	}
	if w.Percent != 0 {
		parts = append(parts, fmt.Sprintf("%d %%", w.Percent))
	}
	if len(parts) == 0 {
		return "all machines"
	}
	return strings.Join(parts, ", ")
}

// EmptyError means that a wave takes no machine, because an earlier wave takes its machines.
type EmptyError struct{ Wave, Before int } // indexes in the Plan

func (e *EmptyError) Error() string {
	return fmt.Sprintf("wave %d has no machine, because wave %d takes its machines before: let the percentages grow, as in 10 and 50, and give the "+
		"wave of all machines last", e.Wave+1, e.Before+1)
}

// Checked returns the Plan with a last wave of all machines, which has the quorum and the bake time of the wave before.
// The error is an *EmptyError.
func (p Plan) Checked() (Plan, error) {
	for i, w := range p {
		if before := slices.IndexFunc(p[:i], func(b Wave) bool { return b.contains(w) }); before >= 0 {
			return nil, &EmptyError{i, before}
		}
	}
	if last := len(p) - 1; last >= 0 && !p[last].contains(Wave{}) {
		p = append(slices.Clone(p), Wave{Quorum: p[last].Quorum, Bake: p[last].Bake})
	}
	return p, nil
}

// Size returns the number of bytes of the Plan as JSON.
func (p Plan) Size() int {
	text, _ := json.Marshal(p) // always works for these types
	return len(text)
}

// contains reports whether the wave w takes each machine that the wave other takes.
func (w Wave) contains(other Wave) bool {
	outside := func(target string) bool { return !slices.Contains(w.Targets, target) }
	return (len(w.Targets) == 0 || len(other.Targets) > 0 && !slices.ContainsFunc(other.Targets, outside)) &&
		(w.Label == "" || w.Label == other.Label) && orAll(w.Percent) >= orAll(other.Percent)
}

func orAll(percent int) int {
	if percent == 0 {
		return 100
	}
	return percent
}

// Valid reports whether the fields of a Plan are in their bounds. Another process may have written the Plan.
func (p Plan) Valid() bool {
	return len(p) <= Most+1 && !slices.ContainsFunc(p, func(w Wave) bool {
		return w.Percent < 0 || w.Percent > 100 || w.Quorum < 1 || w.Quorum > 100 || w.Bake < 0 || w.Bake > MaxBake
	})
}

var (
	labelForm = regexp.MustCompile(LabelPattern)
	nameForm  = regexp.MustCompile(NamePattern)
)

// WrongLabel says what to write instead of a label; empty if the label is right.
func WrongLabel(label string) string {
	if len(label) > MaxText || !labelForm.MatchString(label) {
		return fmt.Sprintf("write KEY=VALUE, with letters, digits, _, ., / and -, at most %d bytes", MaxText)
	}
	return ""
}

// WrongName says what to write instead of the name of a wave; empty if the name is right.
func WrongName(name string) string {
	if len(name) > MaxText || !nameForm.MatchString(name) {
		return fmt.Sprintf("write letters, digits, spaces, _, . and -, at most %d bytes", MaxText)
	}
	return ""
}

// Labels returns the labels of a machine as one text. wrong says what is wrong with them; empty for nothing.
func Labels(list []string) (text, wrong string) {
	keys := make(map[string]bool)
	for _, label := range list {
		if wrong := WrongLabel(label); wrong != "" {
			return "", wrong
		}
		key, _, _ := strings.Cut(label, "=")
		if keys[key] {
			return "", fmt.Sprintf("the key %s is there twice: leave one out", key)
		}
		keys[key] = true
	}
	sorted := slices.Sorted(slices.Values(list))
	if text = strings.Join(sorted, ","); len(text) > maxLabels {
		return "", fmt.Sprintf("the labels of a machine have at most %d bytes: leave some out", maxLabels)
	}
	return text, ""
}
