package load

import (
	"path/filepath"

	"xdspub/source/settingsfile"
	"xdspub/source/syntax"
)

// HasFormat reports whether the format of a file is known by its suffix.
func HasFormat(path string) bool { return syntax.FormatOf(path) != syntax.Other }

// HoldsResources reports whether a file of a source tree is read as resources, by its name.
func HoldsResources(path string) bool {
	return !Hidden(filepath.Base(path)) && !isSettings(path) && HasFormat(path)
}

// isSettings reports whether a file that was found in a source tree is the settings file of a folder.
func isSettings(path string) bool { return filepath.Base(path) == settingsfile.FileName }
