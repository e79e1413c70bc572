package publish

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"xdspub/internal/safefile"
)

// private is the folder in OUT that is ours and not Envoy's.
const private = ".xdspub"

// File is one finished file of the output directory.
type File struct {
	// Path is slash-separated and relative to OUT, as in eds/web/eds.json.
	Path string
	Data []byte
	// Version is the version_info in Data, for the record and for whoever confirms.
	Version string
	// Secret files get mode 0640 and the group of Options, their folder 0750.
	// All others get 0644 and 0755.
	Secret bool
	// private files are for our own user alone: mode 0600.
	private bool
}

func (f File) mode() fs.FileMode {
	switch {
	case f.private:
		return 0o600
	case f.Secret:
		return 0o640
	}
	return 0o644
}

func (f File) folderMode() fs.FileMode {
	if f.Secret {
		return 0o750
	}
	return 0o755
}

// Step is files that may go out together. Write is renamed into place in its
// order, then Remove is unlinked in its order. Remove names files: the folders
// they leave stay for ever.
type Step struct {
	Name   string
	Write  []File
	Remove []string
}

func (s Step) writes(name string) bool {
	return slices.ContainsFunc(s.Write, func(f File) bool { return f.Path == name })
}

// Plan is the steps from the files on disk to the wanted files.
type Plan struct {
	// Steps may write a file several times; the last content counts.
	Steps []Step
	// Gap is the wait between two steps that both moved files, if no Envoy confirmed the first; 0 is no wait.
	Gap time.Duration
	// Confirm asks whether Envoy takes each step; nil asks nobody.
	Confirm Confirmer
	// Republish names files that move, where somebody confirms, even though the same bytes
	// are published.
	Republish []string
	// Rollback is the file that a rollback gives other bytes than before; nil for none.
	Rollback *Rollback
	// Manifest is the record after all steps.
	Manifest Manifest
}

// Rollback is the content of a file after the rollback of the change that writes it: the previous content,
// with the change's additions that draining connections may need.
type Rollback struct {
	// Taken is the content if Envoy accepted the step that writes the file, Refused the content if not.
	// Without bytes, the file gets its previous bytes.
	Taken, Refused RestoredFile
}

// RestoredFile is the content of a file after a rollback.
type RestoredFile struct {
	File File
	// Retired is what File holds and the file did not hold before the change.
	Retired []Retired
}

// check refuses a plan that must not reach the disk. The names of folders come from the
// names of resources, and so from outside.
func (p Plan) check() error {
	named := map[string]bool{}
	tenant := map[string]string{} // folder to the file in it
	written := map[string]int{}   // by which step, from 1
	for i, s := range p.Steps {
		for _, f := range s.Write {
			if n := written[f.Path]; n > 0 && n < i+1 {
				written[f.Path] = i + 1
				continue
			}
			written[f.Path] = i + 1
			if err := checkPath(f.Path, named); err != nil {
				return err
			}
			if len(f.Data) > MaxFile {
				return fmt.Errorf("publish %s: %w", f.Path, &safefile.TooLargeError{Size: int64(len(f.Data)), Limit: MaxFile})
			}
			folder := path.Dir(f.Path)
			if other, ok := tenant[folder]; ok {
				return fmt.Errorf("publish %s: %s is in the same folder, and Envoy would read the two in any order", f.Path, other)
			}
			tenant[folder] = f.Path
		}
		for _, name := range s.Remove {
			if err := checkPath(name, named); err != nil {
				return err
			}
		}
	}
	for _, s := range p.Steps {
		for _, f := range s.Write {
			for i, c := range f.Path {
				if c == '/' && named[f.Path[:i]] {
					return fmt.Errorf("publish %s: %s is a file in the same plan, and can't be a folder too", f.Path, f.Path[:i])
				}
			}
		}
	}
	return p.Manifest.check()
}

// checkPath refuses a path that can't be a published file's, or that the plan names twice.
func checkPath(name string, named map[string]bool) error {
	if err := checkName(name); err != nil {
		return err
	}
	if named[name] {
		return fmt.Errorf("publish %q: named twice in one plan", name)
	}
	named[name] = true
	return nil
}

// checkName refuses a path that leaves OUT, is written in two ways, or has no folder
// of its own.
func checkName(name string) error {
	switch {
	case !fs.ValidPath(name) || strings.Contains(name, "\x00"):
		return fmt.Errorf("publish %q: not a clean path relative to the output directory", name)
	case len(name) >= len(private) && strings.EqualFold(name[:len(private)], private):
		// By any case: a file system may not tell .XDSPUB from .xdspub.
		return fmt.Errorf("publish %q: %s is not for published files", name, private)
	case !strings.Contains(name, "/"):
		return fmt.Errorf("publish %q: a file needs a folder of its own", name)
	}
	return nil
}
