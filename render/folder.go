package render

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"strings"

	"xdspub/diag"
	"xdspub/xds"
)

// longestFolder keeps a folder's name below the 255 bytes of common file systems.
const longestFolder = 200

// Folder returns the name of the folder for a resource of that name: letters, digits,
// dot, underscore and hyphen stand for themselves, every other byte and a leading
// dot as %XX. A name that gets too long ends in ~ and a hash instead. Different
// names give different folders.
func Folder(name string) string {
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-', c == '.' && i > 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	folder := b.String()
	if len(folder) > longestFolder {
		sum := sha256.Sum256([]byte(name))
		folder = folder[:longestFolder] + "~" + hex.EncodeToString(sum[:8])
	}
	return folder
}

// folder returns the directory of a resource's file, below the output directory.
func folder(t *xds.Type, name string) string {
	api := strings.ToLower(t.API)
	if inOneFile(t) {
		return api
	}
	return path.Join(api, Folder(name))
}

// folderCollisions finds names that would share a folder on a file system that
// does not tell upper from lower case.
func folderCollisions(s *xds.Snapshot) diag.List {
	var list diag.List
	seen := make(map[string]*xds.Resource)
	for _, r := range s.All() {
		if !hasFolder(r.Type) {
			continue
		}
		lower := lowerFolder(r.Key)
		first, ok := seen[lower]
		if !ok {
			seen[lower] = r
			continue
		}
		message, help := fmt.Sprintf("the names %q and %q differ only in letter case: on some file systems they would "+
			"share a folder", first.Name, r.Name), "rename one of them"
		if first.Name == r.Name { // duplicate-resource refuses this, unless disabled
			message, help = fmt.Sprintf("%s is defined twice: both would be in the same file", r.Key), "remove or rename one of them"
		}
		d := r.Diagnostic(codeFolderCollision.Name, xds.Path(r.Type.Name), message)
		d.Help = help
		d.Related = []diag.Related{{Position: first.At(xds.Path(first.Type.Name)).Position, Message: "the other one"}}
		list = append(list, d)
	}
	return list
}

// hasFolder reports whether each resource of a type has its own folder.
func hasFolder(t *xds.Type) bool { return t.Asked == xds.ByName }

// lowerFolder returns the folder of a resource on a file system that does not tell upper from
// lower case.
func lowerFolder(k xds.Key) string { return strings.ToLower(folder(k.Type, k.Name)) }
