package load

import (
	"path/filepath"
	"strings"

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

// Hidden reports whether a file or folder of that base name is never read: hidden ones, and the
// temporary files of editors.
func Hidden(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasSuffix(name, "~") || strings.HasSuffix(name, ".swp") ||
		strings.HasPrefix(name, "#") && strings.HasSuffix(name, "#") ||
		name == "4913"
}

// mayBeMistaken reports whether a file with another suffix may be a misnamed file of resources. Prose often
// quotes resources, so files of prose don't count.
func mayBeMistaken(path string) bool {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".md", ".rst", ".html", ".go", ".py", ".sh":
		return false
	}
	return true
}
