// Package quorum tells how many Envoys or clients must acknowledge: of the Envoys that answer, or of the connected
// clients that a Snapshot concerns.
package quorum

import (
	"fmt"
	"strconv"
)

// Quorum is the number of Envoys or clients that must acknowledge. The zero value means all.
type Quorum struct {
	n int // 0 is all
}

// Parse returns the Quorum of "all", "any" or a number from 1.
func Parse(text string) (Quorum, error) {
	switch text {
	case "all":
		return Quorum{}, nil
	case "any":
		return Quorum{n: 1}, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return Quorum{}, fmt.Errorf("quorum %q: want all, any or a number of Envoys, 1 or more", text)
	}
	return Quorum{n: n}, nil
}

// String returns the text of q for Parse. The text of 1 is "any".
func (q Quorum) String() string {
	switch q.n {
	case 0:
		return "all"
	case 1:
		return "any"
	}
	return strconv.Itoa(q.n)
}

// Within reports whether most Envoys can meet the quorum.
func (q Quorum) Within(most int) bool { return q.n <= most }

// Of returns how many of the answering Envoys must acknowledge.
func (q Quorum) Of(answering int) int {
	if q.n == 0 {
		return answering
	}
	return min(q.n, answering)
}
