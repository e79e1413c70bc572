package watch

// state is what a watch knows about its output directory.
type state int

const (
	// unknown: the output directory may hold anything. The next pass reads all files.
	unknown state = iota
	// settled: the output directory holds only files that this watch has published.
	settled
	// idle: the directory is settled, and the last pass planned all files and moved none.
	idle
	// doubtful: something failed in the state idle. The next pass reads all files, and ends early
	// if nothing has changed since the idlePass.
	doubtful
	// gone: the settings no longer have the target. The watch ends.
	gone
	states
)

// input is an event that changes the state.
type input int

const (
	retryAsked    input = iota // a request to retry held snapshots: the next pass must plan
	reconfigured               // the options have changed
	planAll                    // a pass plans, and the whole tree was read since the pass before
	planEdit                   // a pass plans, and only changed paths were read since the pass before
	planObjected               // another target objects to a plan
	planWaits                  // a decision of an operator, or a freeze, keeps a plan from being published
	planPublished              // a plan is published
	planRefused                // Envoy refuses a plan, or the snapshot is held
	movedNothing               // a plan of all files is published, and no file has moved
	failed                     // a pass or a trim ends with an error
	panicked                   // a pass or a trim panics: what the watch knows may be wrong
	targetRemoved              // the settings lose the target
	inputs
)

// transitions maps a state and an input to the next state.
var transitions = [states][inputs]state{
	unknown: {
		retryAsked: unknown, reconfigured: unknown, planAll: unknown, planEdit: unknown, planObjected: unknown, planWaits: unknown,
		planPublished: settled, planRefused: unknown, movedNothing: idle, failed: unknown, panicked: unknown, targetRemoved: gone,
	},
	settled: {
		retryAsked: settled, reconfigured: settled, planAll: unknown, planEdit: settled, planObjected: unknown, planWaits: unknown,
		planPublished: settled, planRefused: unknown, movedNothing: idle, failed: unknown, panicked: unknown, targetRemoved: gone,
	},
	idle: {
		retryAsked: settled, reconfigured: settled, planAll: unknown, planEdit: settled, planObjected: unknown, planWaits: unknown,
		planPublished: settled, planRefused: unknown, movedNothing: idle, failed: doubtful, panicked: unknown, targetRemoved: gone,
	},
	doubtful: {
		retryAsked: unknown, reconfigured: unknown, planAll: unknown, planEdit: unknown, planObjected: unknown, planWaits: unknown,
		planPublished: settled, planRefused: unknown, movedNothing: idle, failed: doubtful, panicked: unknown, targetRemoved: gone,
	},
	gone: {
		retryAsked: gone, reconfigured: gone, planAll: gone, planEdit: gone, planObjected: gone, planWaits: gone,
		planPublished: gone, planRefused: gone, movedNothing: gone, failed: gone, panicked: gone, targetRemoved: gone,
	},
}

// on changes the state.
func (w *watching) on(i input) { w.state = transitions[w.state][i] }

// retryHeld makes the next pass retry held snapshots.
func (w *watching) retryHeld() {
	w.RetryHeld()
	w.on(retryAsked)
}

// trusted reports whether a pass for an edit may skip reading the output directory.
func (s state) trusted() bool { return s == settled || s == idle }

// hasIdlePass reports whether the idlePass is still valid.
func (s state) hasIdlePass() bool { return s == idle || s == doubtful }
