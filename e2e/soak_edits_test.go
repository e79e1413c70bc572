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

// route changes what routes use.
func (s *soak) route() string {
	name := choose(s, s.named(func(name string, r *thing) bool { return (r.kind == "routes" || r.kind == "main") && name != "x1" }))
	uses := s.resources[name].uses
	uses[s.rand.IntN(len(uses))] = s.cluster()
	return name + " " + s.save(s.holder(name))
}

// comeOrGo adds a cluster, or takes one away and changes whoever uses it.
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

// form gives a cluster its endpoints by file or in itself, by turns.
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

// drop takes a resource out of its file.
func (s *soak) drop(name string) (file string) {
	file = s.holder(name)
	s.files[file] = slices.DeleteFunc(s.files[file], func(r string) bool { return r == name })
	delete(s.resources, name)
	return file
}

// edge adds a listener and its routes, or takes both away.
func (s *soak) edge() string {
	i := s.rand.IntN(edges)
	name := fmt.Sprint("l", i)
	if s.resources[name] == nil {
		return name + " comes " + s.save(s.addEdge(i)...)
	}
	return name + " goes " + s.save(s.drop(name), s.drop(fmt.Sprint("r", i)))
}

// address gives a listener another address; then one with a higher number may take
// the one that it had. Just a higher one: the watch takes several edits for one
// change, in which two must not have swapped theirs.
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

// move puts a resource into another file: into that one first, so that it is
// never missing.
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

// folder gives a folder with all below it another name.
func (s *soak) folder() string {
	from := choose(s, []string{"clusters", "edge", "team a", "team-b"})
	to := from + " 2"
	if _, err := os.Lstat(s.path(to)); err == nil {
		from, to = to, from
	}
	if err := os.Rename(s.path(from), s.path(to)); err != nil {
		return err.Error() // it is not there, or was made again beside the other
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

// guest moves a folder out of the tree, and back.
func (s *soak) guest() string {
	in, out := filepath.Join(s.src, "guest"), filepath.Join(s.dir, "guest")
	if s.away {
		in, out = out, in
	}
	s.must(os.Rename(in, out))
	s.away = !s.away
	return fmt.Sprint("away: ", s.away)
}

// visitor adds a listener or takes it away; what only it asks for stays, and goes on
// changing while it drains.
func (s *soak) visitor() string {
	if s.resources["visitor"] == nil {
		return "comes " + s.save(s.add("visitor", &thing{kind: "visitor"}))
	}
	return "goes " + s.save(s.drop("visitor"))
}

// goBad saves a file so that the tree is wrong.
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

// heal saves the bad file as it is meant to be.
func (s *soak) heal() string {
	name := s.bad
	s.bad = ""
	return s.save(name)
}

// touch changes what is no content.
func (s *soak) touch() string {
	name := s.path(s.file())
	now := time.Now()
	s.must(os.Chtimes(name, now, now))
	s.must(os.Chmod(name, os.FileMode(choose(s, []int{0o600, 0o644}))))
	return name
}

// litter puts beside the files what is no resource, or takes it away.
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

// path returns where a file of the tree is now.
func (s *soak) path(name string) string {
	if s.away && strings.HasPrefix(name, "guest/") {
		return filepath.Join(s.dir, name)
	}
	return filepath.Join(s.src, name)
}

// save writes files as they are meant to be, in that order, each in a way of its
// own, and says which. What holds nothing any more goes.
func (s *soak) save(names ...string) string {
	var how []string
	for _, name := range names {
		switch {
		case strings.HasPrefix(name, "mounted/"):
			how = append(how, name+" by "+s.mount())
		case name == s.bad:
			how = append(how, name+" later") // when it is healed
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

// put saves a file in one of the ways in which programs do.
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
		half := max(0, len(text)-3) // is wrong in every format, however long it stands
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

// mount turns the folder "mounted" to a new version of all its files, as Kubernetes
// does: the folder's entries are links through the link ..data, which is swapped.
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
