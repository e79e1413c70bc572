package settingsfile_test

import (
	"fmt"

	"xdspub/source/settingsfile"
	"xdspub/source/syntax"
)

// Read returns each setting with its value and position.
func ExampleRead() {
	var text syntax.Text
	text.Init("xdspub.yaml", syntax.YAML, []byte("eds: inline\nignore:\n- \"*.tmp\"\n"), plain{})
	read, findings := settingsfile.Read(&text)
	for _, s := range read {
		fmt.Println(s.Key, s.Text, s.Places()[0])
	}
	fmt.Println(len(findings))
	// Output:
	// eds inline xdspub.yaml:1:6
	// ignore  xdspub.yaml:3:3
	// 0
}

// plain reads texts without secrets.
type plain struct{}

func (plain) ByEnvoy() bool            { return false }
func (plain) OnlyJSON() bool           { return false }
func (plain) Removal() string          { return "" }
func (plain) IsField(string) bool      { return true }
func (plain) MayBeSecret(string) bool  { return false }
func (plain) HoldsSecrets([]byte) bool { return false }
