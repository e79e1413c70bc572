package watch

// state says what a watch knows of its output directory.
type state int

const (
	// unknown: the output directory may hold anything. The next pass reads all files.
	unknown state = iota
	// settled: the output directory holds only files that this watch has published.
	settled
	// idle: the directory is settled, and the last pass planned all files anew and moved none.
	idle
	// doubtful: something failed in the state idle. The next pass reads all files, and ends early
	// if nothing has changed since the idlePass.
	doubtful
	// gone: the settings no longer have the target. The watch ends.
	gone
	states
)

// input is what changes the state.
type input int

const (
	retryAsked    input = iota // somebody asks for what is held: the next pass has to plan
	reconfigured               // the options are new
	planAll                    // a pass plans all files anew
	planEdit                   // a pass plans an edit
	planObjected               // a plan is dropped: another target objects
	planPublished              // a plan is published
	planRefused                // Envoy refuses a plan, or has refused the same snapshot before
	movedNothing               // a plan of all files is published, and no file has moved
	failed                     // a pass or a trim ends with an error
	targetRemoved              // the settings lose the target
	inputs
)

// transitions has the next state, by the state and the input.
var transitions = [states][inputs]state{
	unknown: {
		retryAsked: unknown, reconfigured: unknown, planAll: unknown, planEdit: unknown, planObjected: unknown,
		planPublished: settled, planRefused: unknown, movedNothing: idle, failed: unknown, targetRemoved: gone,
	},
	settled: {
		retryAsked: settled, reconfigured: settled, planAll: unknown, planEdit: settled, planObjected: unknown,
		planPublished: settled, planRefused: unknown, movedNothing: idle, failed: unknown, targetRemoved: gone,
	},
	idle: {
		retryAsked: settled, reconfigured: settled, planAll: unknown, planEdit: settled, planObjected: unknown,
		planPublished: settled, planRefused: unknown, movedNothing: idle, failed: doubtful, targetRemoved: gone,
	},
	doubtful: {
		retryAsked: unknown, reconfigured: unknown, planAll: unknown, planEdit: unknown, planObjected: unknown,
		planPublished: settled, planRefused: unknown, movedNothing: idle, failed: doubtful, targetRemoved: gone,
	},
	gone: {
		retryAsked: gone, reconfigured: gone, planAll: gone, planEdit: gone, planObjected: gone,
		planPublished: gone, planRefused: gone, movedNothing: gone, failed: gone, targetRemoved: gone,
	},
}

// on changes the state.
func (w *watching) on(i input) { w.state = transitions[w.state][i] }

// retryHeld makes the next pass retry what is held.
func (w *watching) retryHeld() {
	w.RetryHeld()
	w.on(retryAsked)
}

// trusted reports whether a pass for an edit need not read the output directory.
func (s state) trusted() bool { return s == settled || s == idle }

// hasIdlePass reports whether no input has outdated the idlePass.
func (s state) hasIdlePass() bool { return s == idle || s == doubtful }
