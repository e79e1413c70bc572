package facts_test

import (
	"fmt"

	"xdspub/validate"
	"xdspub/validate/facts"
)

// References between names, such as those of aggregate clusters, may form a cycle.
func ExampleCyclePath() {
	leads := map[string][]string{"all": {"west", "east"}, "west": {"spare"}, "spare": {"west"}}
	next := func(name string) []string { return leads[name] }
	cycle := facts.Cycles([]string{"all", "east", "spare", "west"}, next)
	fmt.Println(len(cycle), facts.CyclePath("west", next, cycle))
	// Output:
	// 2 [west spare]
}

// A family sets the fields that all of its rules share.
func ExampleFamily() {
	plain := &validate.Rule{Code: "plain"}
	list := facts.Family("cluster", validate.Envoy, plain, &validate.Rule{Code: "own", Profiles: []validate.Profile{validate.GRPC}})
	for _, r := range list {
		fmt.Println(r.Family, r.Code, r.Profiles)
	}
	fmt.Println(plain.Family == "")
	// Output:
	// cluster plain [envoy-file envoy-ads]
	// cluster own [grpc]
	// true
}
