package facts

import (
	"xdspub/xds"
)

// Named are those of a sorted list that have a name: no name is nobody's, and two
// resources without one are not the same.
func Named(list []*xds.Resource) []*xds.Resource {
	for len(list) > 0 && list[0].Name == "" {
		list = list[1:]
	}
	return list
}
