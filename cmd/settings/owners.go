package settings

import (
	"xdspub/diag"
	"xdspub/source/owners"
	"xdspub/source/settingsfile"
)

// ownersSection is the section of the folders that own their resources.
const ownersSection = "owners"

// mostOwners is the largest number of patterns in the section owners.
const mostOwners = 1_000

// readOwners reads the section of owners.
func (r *fileReader) readOwners(in settingsfile.Setting) {
	patterns, ok := in.Texts()
	if !ok || len(patterns) == 0 || len(patterns) > mostOwners {
		r.fail(in.Position, "owners is a glob pattern of folders, such as teams/*, or a list of up to %d of them", mostOwners)
		return
	}
	for i, pattern := range patterns {
		at := in.Position
		if in.Kind == settingsfile.List {
			at = in.Parts[i].Position
		}
		if wrong := owners.Wrong(pattern); wrong != "" {
			r.fail(at, "invalid owners %q: %s", diag.ClipLine(pattern, 60), wrong)
		}
	}
	r.settings.Owners = Value[[]string]{Value: patterns, Origin: Origin{name: in.Key, file: &in}}
}
