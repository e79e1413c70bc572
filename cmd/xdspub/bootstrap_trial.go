package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"

	"xdspub/check"
	"xdspub/diag"
	"xdspub/envoy/trial"
	"xdspub/setup/bootstrap"
	"xdspub/source/load"
)

// askEnvoy makes the program of --envoy judge a bootstrap before it is written. askEnvoy writes the bootstrap
// and its secrets into a temporary folder for that.
func askEnvoy(c *call, draft load.Input, secrets []bootstrap.SecretFile) error {
	dir, err := os.MkdirTemp("", "xdspub-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	text := draft.Data
	for _, s := range secrets {
		path := filepath.Join(dir, filepath.Base(s.Path))
		text = bytes.ReplaceAll(text, []byte(s.Path), []byte(path)) // the path in the bootstrap
		err = errors.Join(err, os.WriteFile(path, s.Data, 0o600))
	}
	path := filepath.Join(dir, "bootstrap."+draft.Format)
	if err := errors.Join(err, os.WriteFile(path, text, 0o600)); err != nil {
		return err
	}
	ctx, stop := interruptible(c)
	defer stop()
	refused, err := trial.Envoy{Program: c.Envoy.Value}.Validate(ctx, path, draft.Name)
	if err != nil || len(refused) == 0 {
		return err
	}
	none := func(diag.Position) (string, bool) { return "", false }
	printFindings(c, &check.Result{Diagnostics: refused, Line: none}, true)
	return &exit{status: exitRefused}
}
