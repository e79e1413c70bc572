package freeze_test

import (
	"fmt"
	"log"
	"time"

	"xdspub/watch/freeze"
)

// Nothing is published from Friday evening until Monday morning.
func Example() {
	from, err := freeze.ParseMoment("Friday 17:00")
	if err != nil {
		log.Fatal(err)
	}
	to, err := freeze.ParseMoment("Monday 8:00")
	if err != nil {
		log.Fatal(err)
	}
	zone, err := freeze.ZoneNamed("Europe/Berlin")
	if err != nil {
		log.Fatal(err)
	}
	weekend := freeze.Window{From: from, To: to, Zone: zone, Reason: "weekend"}
	if err := weekend.Check(); err != nil {
		log.Fatal(err)
	}
	for _, day := range []int{27, 28} {
		at := time.Date(2026, 11, day, 12, 0, 0, 0, time.UTC)
		fmt.Println(at.Weekday(), freeze.Windows{weekend}.At(at))
	}
	// Output:
	// Friday <nil>
	// Saturday until 2026-11-30T08:00:00+01:00 (Europe/Berlin): weekend
}
