package logs

import (
	"strings"
	"time"

	"github.com/windows-machine-config/wmco/internal/agent/hostutil"
)

// rotatedLayout is the format of the time in the name of a rotated file. kube-log-runner uses the same format
// for the logs of the other services.
const rotatedLayout = "20060102-150405"

// rotatedPath returns the path of a log rotated at the given time.
func rotatedPath(path string, at time.Time) string {
	stem, extension := splitExtension(path)
	return stem + "-" + at.UTC().Format(rotatedLayout) + extension
}

// rotatedAt returns the time of the rotation of a file, and whether rotatedPath creates such a name for the
// log.
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
