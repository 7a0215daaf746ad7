//go:build race

package metadataversion

const raced = true
