package facts_test

import (
	"fmt"

	"xdspub/validate/facts"
)

// Names that lead to others, such as clusters of clusters, may lead back.
func ExampleCyclePath() {
	leads := map[string][]string{"all": {"west", "east"}, "west": {"spare"}, "spare": {"west"}}
	next := func(name string) []string { return leads[name] }
	cycle := facts.Cycles([]string{"all", "east", "spare", "west"}, next)
	fmt.Println(len(cycle), facts.CyclePath("west", next, cycle))
	// Output:
	// 2 [west spare]
}
