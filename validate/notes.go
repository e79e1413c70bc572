package validate

import "time"

// notes records the lookups of the rules that judge a resource, and the time at which their findings may change.
type notes struct {
	asked map[question]any
	until time.Time // zero if the findings do not depend on the time
	calls *calls    // nil if no calls are recorded
}

// note records a lookup and its answer.
func (n *notes) note(q question, answer any) {
	if n != nil {
		n.hint(q, answer)
		n.calls.ask(q)
	}
}

// hint records a lookup that only the help of a finding depends on. It does not belong to the Call.
func (n *notes) hint(q question, answer any) {
	if n == nil {
		return
	}
	if n.asked == nil {
		n.asked = make(map[question]any)
	}
	n.asked[q] = answer
}

// taken returns the recorded calls, and forgets them.
func (n *notes) taken() []Call {
	if n == nil {
		return nil
	}
	return n.calls.take()
}

// wait records a time after which the findings of a rule may change.
func (n *notes) wait(moment time.Time) {
	if n != nil && (n.until.IsZero() || moment.Before(n.until)) {
		n.until = moment
	}
}

// answered is a question and the answer to it.
type answered struct {
	question
	answer any
}

// list returns the recorded lookups in a form that takes little space, and forgets them.
func (n *notes) list() (list []answered) {
	if len(n.asked) > 0 {
		list = make([]answered, 0, len(n.asked))
	}
	for q, answer := range n.asked {
		list = append(list, answered{q, answer})
	}
	const few = 64
	if clear(n.asked); len(list) > few { // clear does not shrink a map
		n.asked = nil
	}
	return list
}
