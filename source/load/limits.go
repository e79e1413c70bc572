package load

// Limits of a source tree. A tree of 100,000 clusters, of 80 MB in one file or in
// 200,000, stays far below them.
const (
	// MaxTotal bounds the bytes of all files of a tree.
	MaxTotal = 512 << 20
	// MaxNames bounds the files and folders of a tree, those that are ignored among
	// them.
	MaxNames = 2_000_000
	// MaxResources bounds the resources of a tree: each takes a kilobyte and more.
	MaxResources = 1_000_000
	// MaxTreeFindings bounds the findings of all files, of each severity.
	MaxTreeFindings = 100_000
)
