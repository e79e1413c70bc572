package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRulesDoc(t *testing.T) {
	pages, err := generate("../..")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range pages {
		got, err := os.ReadFile(filepath.Join(folder("../.."), name))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("docs/rules/%s is out of date: go generate ./tools/rulesdoc (-want +got):\n%s", name, diff)
		}
	}
	there, err := os.ReadDir(folder("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range there {
		if pages[entry.Name()] == nil {
			t.Errorf("docs/rules/%s is of no family: go generate ./tools/rulesdoc", entry.Name())
		}
	}
}
