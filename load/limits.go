package load

// Limits of a source tree. A tree of 100,000 clusters, of 80 MB in one file or in
// 200,000, stays far below them.
const (
	// MaxBytes bounds a file, and what its aliases expand to.
	MaxBytes = 128 << 20
	// MaxNames bounds the files and folders of a tree, those that are ignored among
	// them.
	MaxNames = 2_000_000
)
