package policy_test

import (
	"fmt"

	"xdspub/check/policy"
	"xdspub/diag"
)

// A rule has no findings in a folder.
func ExampleOverrides_Apply() {
	overrides := policy.Overrides{
		{Levels: map[string]policy.Level{"name-missing": policy.At(diag.Warning)}},
		{Files: []string{"legacy"}, Levels: map[string]policy.Level{"name-missing": policy.Dropped}},
	}
	found := diag.List{
		{Code: "name-missing", Position: diag.Position{File: "config/a.yaml", Line: 3}, Message: "the cluster has no name"},
		{Code: "name-missing", Position: diag.Position{File: "config/legacy/b.yaml", Line: 3}, Message: "the cluster has no name"},
	}
	for _, d := range overrides.Apply(found, "config") {
		fmt.Println(d)
	}
	// Output:
	// config/a.yaml:3: warning: the cluster has no name [name-missing]
}
