package trial_test

import (
	"context"
	"fmt"

	"xdspub/envoy/trial"
)

func Example() {
	_, err := trial.Envoy{Program: "true"}.Validate(context.Background(), "envoy.yaml", "envoy.yaml")
	fmt.Println(err)
	// Output:
	// true --mode validate: it ended without a word of the bootstrap: it is no Envoy
}
