package settings_test

import (
	"fmt"
	"log"
	"os"

	"xdspub/cmd/settings"
	"xdspub/source/settingsfile"
)

// The command line wins over the settings file, and the settings file over the default.
func Example() {
	tree, err := os.MkdirTemp("", "xdspub")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(tree)
	if err := os.WriteFile(settingsfile.PathIn(tree), []byte("format: yaml\neds: inline\n"), 0o644); err != nil {
		log.Fatal(err)
	}
	rows := settings.Render()
	var line []settings.Given
	for _, r := range rows {
		if r.Name() == "format" {
			line = append(line, settings.Given{Row: r, Text: "pb"})
		}
	}
	s, err := settings.New(rows, line)
	if err != nil {
		log.Fatal(err)
	}
	if s, err = s.WithFile(tree); err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.Format.Value, s.EDS.Value, s.StepGap.Value)
	// Output:
	// pb inline 1s
}
