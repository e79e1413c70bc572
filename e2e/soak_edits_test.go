package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"xdspub/tools/envoytest"
)

// step makes one edit.
func (s *soak) step() {
	s.steps++
	edits := []struct {
		name string
		do   func() string
	}{
		{"change", s.change}, {"change", s.change}, {"change", s.change}, {"change", s.change},
		{"route", s.route}, {"route", s.route},
		{"cluster", s.comeOrGo}, {"cluster", s.comeOrGo}, {"form", s.form},
		{"edge", s.edge}, {"address", s.address}, {"move", s.move}, {"move", s.move}, {"rename", s.rename}, {"folder", s.folder}, {"guest", s.guest}, {"visitor", s.visitor},
		{"bad", s.goBad}, {"bad", s.goBad}, {"touch", s.touch}, {"litter", s.litter},
		{"hup", func() string { s.watch.Signal(s.t, syscall.SIGHUP); return "" }},
	}
	edit := choose(s, edits)
	if s.bad != "" && s.rand.IntN(3) == 0 {
		edit.name, edit.do = "heal", s.heal
	}
	s.t.Logf("%d %s %s", s.steps, edit.name, edit.do())
}

// change changes the value of a resource.
func (s *soak) change() string {
	name := choose(s, s.named(func(name string, r *thing) bool { return s.holder(name) != s.bad }))
	s.resources[name].value = s.rand.IntN(9)
	return name + " " + s.save(s.holder(name))
}

// route changes the clusters that routes use.
func (s *soak) route() string {
	name := choose(s, s.named(func(name string, r *thing) bool { return (r.kind == "routes" || r.kind == "main") && name != "x1" }))
	uses := s.resources[name].uses
	uses[s.rand.IntN(len(uses))] = s.cluster()
	return name + " " + s.save(s.holder(name))
}

// comeOrGo adds a cluster, or removes a cluster after it changed the users.
func (s *soak) comeOrGo() string {
	name, kind := fmt.Sprint("c", s.rand.IntN(statics)), "static"
	if s.rand.IntN(3) == 0 {
		name, kind = fmt.Sprint("e", s.rand.IntN(dynamic)), "eds"
	}
	if s.resources[name] == nil {
		files := []string{s.add(name, &thing{kind: kind})}
		if kind == "eds" {
			files = append(files, s.add(name+".endpoints", &thing{kind: "endpoints"}))
		}
		return name + " comes " + s.save(files...)
	}
	var files []string
	for _, user := range s.named(func(_ string, r *thing) bool { return slices.Contains(r.uses, name) }) {
		for i, used := range s.resources[user].uses {
			for used == name {
				used = s.cluster()
			}
			s.resources[user].uses[i] = used
		}
		files = append(files, s.holder(user))
	}
	for _, r := range []string{name, name + ".endpoints"} {
		if s.resources[r] != nil {
			files = append(files, s.drop(r))
		}
	}
	return name + " goes " + s.save(files...)
}

// form changes a cluster from EDS to static endpoints, or back.
func (s *soak) form() string {
	list := s.named(func(name string, r *thing) bool {
		return r.kind == "eds" || r.kind == "static" && strings.HasPrefix(name, "e")
	})
	if len(list) == 0 {
		return "nothing"
	}
	name := choose(s, list)
	r := s.resources[name]
	if r.kind == "eds" {
		r.kind = "static"
		return name + " has its endpoints in itself " + s.save(s.holder(name), s.drop(name+".endpoints"))
	}
	r.kind = "eds"
	return name + " has its endpoints by file " + s.save(s.add(name+".endpoints", &thing{kind: "endpoints"}), s.holder(name))
}

// drop removes a resource from its file.
func (s *soak) drop(name string) (file string) {
	file = s.holder(name)
	s.files[file] = slices.DeleteFunc(s.files[file], func(r string) bool { return r == name })
	delete(s.resources, name)
	return file
}

// edge adds a listener and its routes, or removes both.
func (s *soak) edge() string {
	i := s.rand.IntN(edges)
	name := fmt.Sprint("l", i)
	if s.resources[name] == nil {
		return name + " comes " + s.save(s.addEdge(i)...)
	}
	return name + " goes " + s.save(s.drop(name), s.drop(fmt.Sprint("r", i)))
}

// address gives a listener another address. Then a listener with a higher number may take the old address. Only
// listeners with higher numbers do, because the watch may publish several edits in one change, in which no two
// listeners may exchange their addresses.
func (s *soak) address() string {
	list := s.named(func(name string, r *thing) bool { return r.kind == "listener" && name != "edge" && name != "guest" })
	if len(list) == 0 {
		return "nothing"
	}
	i := s.rand.IntN(len(list))
	had := s.ports[list[i]]
	s.ports[list[i]] = envoytest.FreePort(s.t)
	files := []string{s.holder(list[i])}
	if i+1 < len(list) && s.rand.IntN(2) == 0 {
		s.ports[list[i+1]] = had
		files = append(files, s.holder(list[i+1]))
	}
	return list[i] + " " + s.save(files...)
}

// move moves a resource to another file. It writes the new file first, so that the resource is never missing.
func (s *soak) move() string {
	name := choose(s, s.named(func(name string, _ *thing) bool { return !strings.HasPrefix(s.holder(name), "guest/") }))
	from, to := s.holder(name), s.file()
	if from == to {
		return "nothing"
	}
	r := s.resources[name]
	s.drop(name)
	s.resources[name] = r
	s.files[to] = append(s.files[to], name)
	return name + " " + s.save(to, from)
}

// rename gives a file another name, in another folder, with another suffix for
// the same format.
func (s *soak) rename() string {
	from := s.file()
	if strings.HasPrefix(from, "mounted/") {
		return "nothing"
	}
	suffix := filepath.Ext(from)
	for _, same := range [][]string{{".yaml", ".yml"}, {".pb_text", ".txtpb", ".textproto"}} {
		if slices.Contains(same, suffix) {
			suffix = choose(s, same)
		}
	}
	to := filepath.Join(choose(s, folders[:len(folders)-1]), fmt.Sprintf("f%d%s", s.rand.IntN(1000), suffix))
	if s.files[to] != nil || from == to {
		return "nothing"
	}
	s.files[to] = s.files[from]
	delete(s.files, from)
	s.must(os.MkdirAll(filepath.Dir(s.path(to)), 0o755))
	s.must(os.Rename(s.path(from), s.path(to)))
	return from + " to " + to
}

// folder renames a folder.
func (s *soak) folder() string {
	from := choose(s, []string{"clusters", "edge", "team a", "team-b"})
	to := from + " 2"
	if _, err := os.Lstat(s.path(to)); err == nil {
		from, to = to, from
	}
	if err := os.Rename(s.path(from), s.path(to)); err != nil {
		return err.Error() // from does not exist, or to exists, too
	}
	for _, name := range slices.Collect(maps.Keys(s.files)) {
		below, ok := strings.CutPrefix(name, from+"/")
		if !ok {
			continue
		}
		moved := to + "/" + below
		s.files[moved] = s.files[name]
		delete(s.files, name)
		if s.bad == name {
			s.bad = moved
		}
	}
	return from + " to " + to
}

// guest moves a folder out of the tree, or back.
func (s *soak) guest() string {
	in, out := filepath.Join(s.src, "guest"), filepath.Join(s.dir, "guest")
	if s.away {
		in, out = out, in
	}
	s.must(os.Rename(in, out))
	s.away = !s.away
	return fmt.Sprint("away: ", s.away)
}

// visitor adds a listener or removes it. The resources that only this listener asks for stay, and change while it
// drains.
func (s *soak) visitor() string {
	if s.resources["visitor"] == nil {
		return "comes " + s.save(s.add("visitor", &thing{kind: "visitor"}))
	}
	return "goes " + s.save(s.drop("visitor"))
}

// goBad saves a file with an error, so that the tree is invalid.
func (s *soak) goBad() string {
	name := s.file()
	if s.bad != "" || strings.HasPrefix(name, "mounted/") || len(s.files[name]) == 0 {
		return "nothing"
	}
	s.bad = name
	text := s.text(name)
	var list []string
	for _, r := range s.files[name] {
		list = append(list, s.document(r))
	}
	how := choose(s, []string{"empty", "cut off", "unknown cluster", "duplicate", "unknown field"})
	switch how {
	case "empty":
		text = ""
	case "cut off":
		text = text[:len(text)-3]
	case "unknown cluster":
		text = s.encode(name, append(list, routes("bad", "nope"))...)
	case "duplicate":
		text = s.encode(name, append(list, list[0])...)
	case "unknown field":
		switch filepath.Ext(name) {
		case ".json":
			text = `{"bogus": 1, ` + text[1:]
		case ".pb":
			text += "\xfa\x01\x01x" // field 31
		case ".yaml", ".yml":
			text += "---\n" + document("envoy.config.cluster.v3.Cluster", "name: bad, bogus: 1")
		default:
			text += "\nbogus: 1\n"
		}
	}
	return how + ": " + s.put(name, text)
}

// heal saves the invalid file without its error.
func (s *soak) heal() string {
	name := s.bad
	s.bad = ""
	return s.save(name)
}

// touch changes a file, but not its content.
func (s *soak) touch() string {
	name := s.path(s.file())
	now := time.Now()
	s.must(os.Chtimes(name, now, now))
	s.must(os.Chmod(name, os.FileMode(choose(s, []int{0o600, 0o644}))))
	return name
}

// litter adds a file without resources beside the others, or removes it.
func (s *soak) litter() string {
	name := s.path(filepath.Join(choose(s, folders), choose(s, []string{"nothing.json", "README.md", ".hidden.yaml", "a.yaml~", ".a.yaml.swp", "4913"})))
	if err := os.Remove(name); err == nil || !errors.Is(err, fs.ErrNotExist) {
		s.must(err)
		return "no " + name
	}
	text := "resources: [of nobody"
	if filepath.Base(name) == "nothing.json" {
		text = `{"resources": []}`
	}
	s.must(os.MkdirAll(filepath.Dir(name), 0o755))
	s.must(os.WriteFile(name, []byte(text), 0o644))
	return name
}

func (s *soak) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// path returns the present path of a file of the tree.
func (s *soak) path(name string) string {
	if s.away && strings.HasPrefix(name, "guest/") {
		return filepath.Join(s.dir, name)
	}
	return filepath.Join(s.src, name)
}

// save writes the intended content of files, in the given order, each in a random way, and returns the ways. It
// removes files without resources.
func (s *soak) save(names ...string) string {
	var how []string
	for _, name := range names {
		switch {
		case strings.HasPrefix(name, "mounted/"):
			how = append(how, name+" by "+s.mount())
		case name == s.bad:
			how = append(how, name+" later") // heal saves it
		case len(s.files[name]) == 0:
			delete(s.files, name)
			if err := os.Remove(s.path(name)); !errors.Is(err, fs.ErrNotExist) {
				s.must(err)
			}
			how = append(how, "no "+name)
		default:
			how = append(how, s.put(name, s.text(name)))
		}
	}
	return strings.Join(how, ", ")
}

// put saves a file in one of the ways in which programs save files.
func (s *soak) put(name, text string) string {
	path := s.path(name)
	s.must(os.MkdirAll(filepath.Dir(path), 0o755))
	write := func(path, text string) { s.must(os.WriteFile(path, []byte(text), 0o644)) }
	how := choose(s, []string{"rename", "rename beside", "in place", "two writes", "backup", "anew"})
	switch how {
	case "rename":
		write(filepath.Join(s.dir, "staged"), text)
		s.must(os.Rename(filepath.Join(s.dir, "staged"), path))
	case "rename beside":
		beside := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".tmp")
		write(beside, text)
		s.must(os.Rename(beside, path))
	case "in place":
		write(path, text)
	case "two writes":
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
		s.must(err)
		half := max(0, len(text)-3) // invalid in every format, if the watch reads it
		_, err = f.WriteString(text[:half])
		s.must(err)
		s.pause(s.pick(0, 0, 10, 300))
		_, err = f.WriteString(text[half:])
		s.must(err)
		s.must(f.Close())
	case "backup": // as vim does
		if err := os.Rename(path, path+"~"); !errors.Is(err, fs.ErrNotExist) {
			s.must(err)
		}
		write(path, text)
		if err := os.Remove(path + "~"); !errors.Is(err, fs.ErrNotExist) {
			s.must(err)
		}
	case "anew":
		if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			s.must(err)
		}
		write(path, text)
	}
	return name + " by " + how
}

// mount replaces all files of the folder "mounted" at once, as Kubernetes does: its entries are links through the
// link ..data, and a rename replaces this link.
func (s *soak) mount() string {
	dir := filepath.Join(s.src, "mounted")
	version := fmt.Sprintf("..v%d", s.volumes)
	old := fmt.Sprintf("..v%d", s.volumes-1)
	s.volumes++
	s.must(os.MkdirAll(filepath.Join(dir, version), 0o755))
	var names []string
	for name, list := range s.files {
		if base, ok := strings.CutPrefix(name, "mounted/"); ok && len(list) > 0 {
			s.must(os.WriteFile(filepath.Join(dir, version, base), []byte(s.text(name)), 0o644))
			names = append(names, base)
		}
	}
	s.must(os.Symlink(version, filepath.Join(dir, "..data_tmp")))
	s.must(os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	entries, err := os.ReadDir(dir)
	s.must(err)
	for _, name := range names {
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)); !errors.Is(err, fs.ErrExist) {
			s.must(err)
		}
	}
	for _, e := range entries {
		if e.Type()&fs.ModeSymlink != 0 && !strings.HasPrefix(e.Name(), "..") && !slices.Contains(names, e.Name()) {
			s.must(os.Remove(filepath.Join(dir, e.Name())))
			delete(s.files, "mounted/"+e.Name())
		}
	}
	s.must(os.RemoveAll(filepath.Join(dir, old)))
	return version
}
