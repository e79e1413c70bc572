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
	// true --mode validate: the program exited without judging the bootstrap: is it Envoy?
}
