package load_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"xdspub/source/load"
	"xdspub/tools/sample"
)

// endsAfter is a context that ends after a number of calls of Err.
type endsAfter struct {
	context.Context
	left atomic.Int64
}

func (c *endsAfter) Err() error {
	if c.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// TestEndsWithinAFile checks that a Load whose context ends stops within a file of any format, and keeps
// nothing of the file.
func TestEndsWithinAFile(t *testing.T) {
	list := sample.Clusters(300)
	for name, text := range map[string]string{
		"pieces.yaml": list,
		"whole.yaml":  strings.Replace(list, "name: service-00003", "name: &x service-00003", 1),
		"faults.yaml": strings.ReplaceAll(list, "name: service", "nam: service"),
		"list.json":   "[" + strings.TrimSuffix(strings.Repeat(`{"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "a"},`, 300), ",") + "]",
		"list.txtpb":  strings.Repeat("resources { [type.googleapis.com/envoy.config.cluster.v3.Cluster] { name: \"a\" } }\n", 300),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			loader := load.New(load.Options{})
			ctx := &endsAfter{Context: t.Context()}
			const asked = 200 // more calls than the number of files
			ctx.left.Store(asked)
			if r, err := loader.Load(ctx, dir); !errors.Is(err, context.Canceled) {
				t.Fatalf("%v, %v, asked %d times", r, err, asked-ctx.left.Load())
			}
			got, err := loader.Load(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			want, err := load.New(load.Options{}).Load(t.Context(), dir)
			if err != nil || len(got.Resources()) != len(want.Resources()) || len(got.Diagnostics) != len(want.Diagnostics) || got.Partial != want.Partial {
				t.Errorf("%d resources and %d findings, want %d and %d; %v", len(got.Resources()), len(got.Diagnostics), len(want.Resources()), len(want.Diagnostics), err)
			}
		})
	}
}
