package soak

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"
)

// writeProfiles writes profiles of goroutines and memory at the end of a day: `go tool pprof -base` of two days shows
// the growth between the days. It also writes the files on the hosts.
func (l *lab) writeProfiles(number int) error {
	for _, name := range []string{"goroutine", "heap"} {
		file, err := os.Create(filepath.Join(l.options.Dir, fmt.Sprintf("%s-%02d.pprof", name, number+1)))
		if err != nil {
			return fmt.Errorf("write the profile of day %d: %w", number+1, err)
		}
		err = pprof.Lookup(name).WriteTo(file, 0)
		if err = errors.Join(err, file.Close()); err != nil {
			return fmt.Errorf("write the profile of day %d: %w", number+1, err)
		}
	}
	var files strings.Builder
	for _, h := range l.allHosts() {
		for path, file := range h.Machine().Snapshot().Files {
			fmt.Fprintf(&files, "%s %s %d\n", h.Options.Name, path, file.Size)
		}
	}
	return os.WriteFile(filepath.Join(l.options.Dir, fmt.Sprintf("files-%02d.txt", number+1)), []byte(files.String()), 0o600)
}
