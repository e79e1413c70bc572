package validate

import "time"

// notes is what rules look up while they judge a resource, and when they may find another thing.
type notes struct {
	asked map[question]any
	until time.Time // zero for as long as asked holds
	calls *calls    // nil where they are not taken down
}

// note takes down what a rule looked up.
func (n *notes) note(q question, answer any) {
	if n != nil {
		n.hint(q, answer)
		n.calls.ask(q)
	}
}

// hint takes down what a rule looked up for the help of a finding alone.
func (n *notes) hint(q question, answer any) {
	if n == nil {
		return
	}
	if n.asked == nil {
		n.asked = make(map[question]any)
	}
	n.asked[q] = answer
}

// taken returns the calls that were taken down.
func (n *notes) taken() []Call {
	if n == nil {
		return nil
	}
	return n.calls.take()
}

// wait takes down a moment from which on a rule may find another thing.
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

// list returns the questions in a form that takes little space, and forgets them.
func (n *notes) list() (list []answered) {
	if len(n.asked) > 0 {
		list = make([]answered, 0, len(n.asked))
	}
	for q, answer := range n.asked {
		list = append(list, answered{q, answer})
	}
	const few = 64
	if clear(n.asked); len(list) > few { // it would stay as large
		n.asked = nil
	}
	return list
}
