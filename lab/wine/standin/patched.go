package standin

import (
	"maps"
	"slices"
)

// PatchedLibraries returns the file names in WineLibraries that PatchWine changes.
func PatchedLibraries() []string { return slices.Sorted(maps.Keys(forwards)) }
