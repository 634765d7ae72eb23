package agentapi

import "bytes"

// Limits of a line: the operator refuses larger lines, because the sending host is not trusted. The facts of a
// host with many files take about 100 KiB and a few thousand values.
const (
	MaxLineBytes = 2 << 20
	// MaxLineValues limits the members and elements: a short JSON text can take much memory.
	MaxLineValues = 20_000
)

// CountValues returns a lower bound of the number of members and elements in a JSON text.
func CountValues(data []byte) int {
	return bytes.Count(data, []byte(",")) + bytes.Count(data, []byte(":"))
}
