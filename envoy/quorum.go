package envoy

import (
	"fmt"
	"strconv"
)

// Quorum is how many of the Envoys that answer must acknowledge. The zero value
// is all of them.
type Quorum struct {
	n int // 0 is all
}

// ParseQuorum takes "all", "any", or a number of Envoys.
func ParseQuorum(text string) (Quorum, error) {
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

// String returns the text that ParseQuorum takes.
func (q Quorum) String() string {
	switch q.n {
	case 0:
		return "all"
	case 1:
		return "any"
	}
	return strconv.Itoa(q.n)
}

// Within reports whether that many Envoys can meet the quorum.
func (q Quorum) Within(envoys int) bool { return q.n <= envoys }

// of returns how many it is of the Envoys that answer.
func (q Quorum) of(answering int) int {
	if q.n == 0 {
		return answering
	}
	return min(q.n, answering)
}
