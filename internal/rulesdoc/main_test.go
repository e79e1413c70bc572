package main

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRulesDoc(t *testing.T) {
	want, err := generate("../..")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path("../.."))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("docs/rules.md is out of date: go generate ./internal/rulesdoc (-want +got):\n%s", diff)
	}
}
