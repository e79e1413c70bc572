package rollout_test

import (
	"fmt"

	"xdspub/source/rollout"
)

// The wave of a machine gets the candidate when the wave opens.
func Example() {
	s := rollout.Share{Candidate: "v2", Base: "v1", Wave: 2, Name: "10 %", Open: 1, Waves: 3}
	fmt.Println(s)
	s.Open = 2
	fmt.Println(s)
	s.TakenBack = "the machine m1 refuses the snapshot"
	fmt.Println(s)
	s = rollout.Share{Candidate: "v2", Base: "v1", Open: 1, Waves: 3}
	fmt.Println(s)
	// Output:
	// this machine is in wave 2 of 3 (10 %), and gets the base, snapshot v1; the candidate v2 is in wave 1
	// this machine is in wave 2 of 3 (10 %), and gets the candidate, snapshot v2; the base is v1
	// the rollout of snapshot v2 was taken back: the machine m1 refuses the snapshot; this machine gets snapshot v1
	// this machine is in no wave, and gets the base, snapshot v1; the candidate v2 is in wave 1 of 3
}
