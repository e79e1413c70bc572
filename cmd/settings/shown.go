package settings

import "strings"

// Shown returns the settings that the command line, a variable or a settings file gives, as lines for a bug report. It
// leaves out the values of settings that hold commands, addresses of receivers, or paths of keys.
func (s *Settings) Shown() (list [][2]string) {
	private := make(map[string]bool)
	for _, r := range Hooks() {
		private[r.Name()] = true
	}
	named := make(map[string]bool)
	for _, r := range append(Doctor(), Settable()...) {
		o := r.Origin(s)
		if named[r.Name()] || !o.Given() && !o.InFile() {
			continue
		}
		named[r.Name()] = true
		value := strings.Join(r.Texts(s), ", ")
		if private[r.Name()] {
			value = "…"
		}
		list = append(list, [2]string{r.Name(), value})
	}
	return list
}
