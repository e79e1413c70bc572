package load

import (
	"errors"
	"fmt"
	"os"

	"xdspub/diag"
	"xdspub/internal/safefile"
	"xdspub/source/decode"
	"xdspub/source/settingsfile"
	"xdspub/source/syntax"
)

// maxConfig bounds the project's own file.
const maxConfig = 1 << 20

// Config reads a settings file: a mapping of names to values. Config returns the settings in order, When
// without its value, and findings about the file. The error is not nil if the file can't be read.
func Config(path string) ([]settingsfile.Setting, diag.List, error) {
	data, err := safefile.Read(path, maxConfig)
	if err != nil {
		return nil, nil, err
	}
	settings, list := settingsfile.Read(&decode.NewSource(path, syntax.YAML, data, decode.SourceOptions{}).Text)
	return settings, list, nil
}

// OnlyWhen reports whether a path is that of a settings file that holds nothing but settingsfile.When, as those of
// folders below the root of a tree do.
func OnlyWhen(path string) bool {
	read, list, err := Config(path)
	return err == nil && len(list) == 0 && len(read) == 1 && read[0].Key == settingsfile.When
}

// TreeConfig returns Config for the file at the root of a source tree, without following links out of the
// tree. A tree of one file has no settings.
func TreeConfig(root string) ([]settingsfile.Setting, diag.List, error) {
	if info, err := os.Stat(root); err != nil || !info.IsDir() {
		return nil, nil, err
	}
	t, err := openTree(root, nil)
	if err != nil {
		return nil, nil, err
	}
	defer t.close()
	read, err := t.read(settingsfile.PathIn(root), maxConfig)
	if _, outside := errors.AsType[*decode.OutsideError](err); outside {
		err = fmt.Errorf("read %s: %w: name it by --config where you trust it", settingsfile.PathIn(root), err)
	}
	if err != nil {
		return nil, nil, err
	}
	settings, list := settingsfile.Read(&decode.NewSource(settingsfile.PathIn(root), syntax.YAML, read.data, decode.SourceOptions{}).Text)
	return settings, list, nil
}
