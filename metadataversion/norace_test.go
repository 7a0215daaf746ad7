//go:build !race

package metadataversion

// raced says that the race detector makes everything several times slower.
const raced = false
