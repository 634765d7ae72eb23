package verb

import "bytes"

// How much a line may have: the operator refuses more, because a host that it does not trust sends it. Facts of a host with
// many files take some 100 KiB and a few thousand values.
const (
	MostBytes = 2 << 20
	// MostValues bounds the members and elements: what is short in JSON takes much memory.
	MostValues = 20_000
)

// Values is at least how many members and elements a JSON text has.
func Values(data []byte) int {
	return bytes.Count(data, []byte(",")) + bytes.Count(data, []byte(":"))
}
