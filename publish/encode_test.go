package publish

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// TestEncode: records are what encoding/json would write, byte for byte.
func TestEncode(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	letters := []string{"a", "Z", "9", "/", "-", "%2F", "\"", "\\", "<", ">", "&", "é", "\u2028", "\n", "\x7f", "\xff", " "}
	text := func() (s string) {
		for range random.IntN(6) {
			s += letters[random.IntN(len(letters))]
		}
		return s
	}
	e := new(encoder)
	var files map[string]Published
	for range 500 {
		switch n := random.IntN(5); n {
		case 0:
			files = nil
		case 1, 2: // the same names, other content
			for name := range files {
				files[name] = Published{text(), text()}
			}
		default:
			files = make(map[string]Published)
			for range n {
				files[text()] = Published{text(), text()}
			}
		}
		m := Manifest{
			Layout: layout, Format: text(), Snapshot: text(), Published: time.Unix(int64(random.IntN(1e9)), 0).UTC(), Files: files,
			Retired: []Retired{{Cluster: text()}}, Resources: map[string]int{"CDS": 1}, DrainingWatches: []DrainingWatch{{Watch: text()}},
		}
		in := Intent{
			Layout: layout, From: text(), To: text(), Direction: Forward, Manifest: m, Record: text(),
			Steps: []intentStep{{Name: text(), Files: []saved{{Path: text(), Saved: text()}}}},
		}
		for _, record := range []any{m, in, Refused{}} {
			want, err := json.MarshalIndent(record, "", "  ")
			got, gerr := e.encode(record)
			if err != nil || gerr != nil || string(got) != string(want) {
				t.Fatalf("got %s\nwant %s\n%v %v", got, want, gerr, err)
			}
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	m := Manifest{Layout: layout, Files: make(map[string]Published)}
	for i := range 10_000 {
		m.Files[fmt.Sprintf("eds/service-%05d/eds.json", i)] = Published{"v0123456789abcdef", "0123456789abcdef0123456789abcdef"}
	}
	e := new(encoder)
	for name, encode := range map[string]func() ([]byte, error){
		"by hand":       func() ([]byte, error) { return e.encode(m) },
		"encoding/json": func() ([]byte, error) { return json.MarshalIndent(m, "", "  ") },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := encode(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
