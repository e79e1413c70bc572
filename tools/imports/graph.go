package main

import (
	"maps"
	"slices"
	"strings"
)

// graph is which box of the picture imports which. A box is a folder, or several that stand in
// one folder and have the same arrows.
type graph map[string]map[string]bool

// graphOf returns the graph of the program: without tests and tools, and without imports that
// follow from others.
func graphOf(list []pkg) graph {
	imports := make(graph)
	for _, p := range list {
		name := folder(p.ImportPath)
		if name == "" {
			continue
		}
		if imports[name] == nil {
			imports[name] = make(map[string]bool)
		}
		for _, i := range p.Imports {
			if below := folder(i); below != "" && below != name {
				imports[name][below] = true
			}
		}
	}
	program := map[string]bool{"cmd/xdspub": true}
	imports.reach("cmd/xdspub", program)
	maps.DeleteFunc(imports, func(name string, _ map[string]bool) bool { return !program[name] })
	return imports.reduced().merged()
}

// folder returns the folder of a package; all families of rules are one. It is "" for
// packages of other modules.
func folder(path string) string {
	name, ours := strings.CutPrefix(path, module)
	switch {
	case !ours:
		return ""
	case isFamily(name):
		return "validate/rules/each family"
	}
	return name
}

// isFamily reports whether a package holds the rules of one family.
func isFamily(name string) bool { return strings.HasPrefix(name, "validate/rules/") }

// reach adds all that a box leads to.
func (g graph) reach(name string, found map[string]bool) {
	for below := range g[name] {
		if !found[below] {
			found[below] = true
			g.reach(below, found)
		}
	}
}

// reduced returns g without the arrows that others make up for.
func (g graph) reduced() graph {
	less := make(graph)
	for name, imports := range g {
		further := make(map[string]bool) // what the imports lead to
		for below := range imports {
			g.reach(below, further)
		}
		less[name] = maps.Clone(imports)
		maps.DeleteFunc(less[name], func(below string, _ bool) bool { return further[below] })
	}
	return less
}

// merged returns g with one box for all folders that stand side by side and have the same
// arrows. Its name is theirs, one a line.
func (g graph) merged() graph {
	alike := make(map[string][]string)
	for _, name := range slices.Sorted(maps.Keys(g)) {
		dir, _ := split(name)
		key := strings.Join(slices.Concat([]string{dir, ":"}, slices.Sorted(maps.Keys(g[name])), []string{":"}, g.importers(name)), " ")
		if dir == "" {
			key = name
		}
		alike[key] = append(alike[key], name)
	}
	box := make(map[string]string)
	for _, names := range alike {
		for _, name := range names {
			box[name] = strings.Join(names, "\n")
		}
	}
	boxes := make(graph)
	for name, imports := range g {
		boxes[box[name]] = make(map[string]bool)
		for below := range imports {
			boxes[box[name]][box[below]] = true
		}
	}
	return boxes
}

// importers lists the boxes with an arrow to name.
func (g graph) importers(name string) []string {
	var list []string
	for _, from := range slices.Sorted(maps.Keys(g)) {
		if g[from][name] {
			list = append(list, from)
		}
	}
	return list
}

// split returns the folder that a folder stands in, with a slash, and its own name.
func split(name string) (dir, base string) {
	i := strings.LastIndex(name, "/") + 1
	return name[:i], name[i:]
}

// row returns how many arrows the longest way from the top to a box has.
func (g graph) row(name string) int {
	row := 0
	for _, from := range g.importers(name) {
		row = max(row, g.row(from)+1)
	}
	return row
}
