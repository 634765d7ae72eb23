package logs

import (
	"strings"
	"time"

	"github.com/windows-machine-config/wmco/internal/agent/hostutil"
)

// rotatedLayout is the time in the name of a file that was rotated away. kube-log-runner names those of the other
// services so too.
const rotatedLayout = "20060102-150405"

// rotatedPath is the other name of a log that is rotated away at the time.
func rotatedPath(path string, at time.Time) string {
	stem, extension := splitExtension(path)
	return stem + "-" + at.UTC().Format(rotatedLayout) + extension
}

// rotatedAt tells when a file was rotated away, and whether its name is one that rotatedPath gives for the log.
func rotatedAt(path, name string) (at time.Time, rotated bool) {
	_, own := hostutil.SplitPath(path)
	stem, extension := splitExtension(strings.ToLower(own))
	stamp, prefixed := strings.CutPrefix(strings.ToLower(name), stem+"-")
	stamp, suffixed := strings.CutSuffix(stamp, extension)
	at, err := time.Parse(rotatedLayout, stamp)
	return at, prefixed && suffixed && err == nil
}

func splitExtension(path string) (stem, extension string) {
	_, name := hostutil.SplitPath(path)
	if i := strings.LastIndexByte(name, '.'); i > 0 {
		return path[:len(path)-len(name)+i], name[i:]
	}
	return path, ""
}
