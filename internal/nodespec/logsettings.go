package nodespec

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// LogSettings rotate the logs of all services. Zero fields leave rotation off.
type LogSettings struct {
	FileSize      string        // a Kubernetes quantity of bytes: "100Mi"
	FileAge       time.Duration // older rotated files are deleted
	FlushInterval time.Duration // how often kube-log-runner writes; zero for its default
}

// What holds where the operator's environment says nothing.
const (
	defaultLogSize = "100Mi"
	defaultLogAge  = "168h"
)

// maxLogSize is more than any disk has; a larger number is taken for a mistake.
const maxLogSize = 1 << 50

// fileSize is the part of Kubernetes' quantities that makes sense as a size of files. The suffix for 1000 is a small k.
var fileSize = regexp.MustCompile(`^([0-9]{1,15})([kMGT]|[KMGT]i)?$`)

var sizeUnits = map[string]float64{
	"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40,
}

// parseSize returns a size in bytes.
func parseSize(size string) (bytes int64, ok bool) {
	parts := fileSize.FindStringSubmatch(size)
	if parts == nil {
		return 0, false
	}
	// Both are exact in 53 bits, and so is the product as far as it is accepted.
	number, err := strconv.ParseFloat(parts[1], 64)
	if product := number * sizeUnits[parts[2]]; err == nil && product <= maxLogSize {
		return int64(product), true
	}
	return 0, false
}

// bytes is FileSize as a number; zero leaves rotation by size off.
func (s LogSettings) bytes() int64 {
	bytes, _ := parseSize(s.FileSize)
	return bytes
}

// ParseLogSettings reads the operator's environment variables SERVICES_LOG_FILE_SIZE, SERVICES_LOG_FILE_AGE and
// SERVICES_LOG_FLUSH_INTERVAL. Empty values mean the defaults; zeros turn the setting off.
func ParseLogSettings(size, age, flush string) (LogSettings, error) {
	var settings LogSettings
	size, age = cmp.Or(size, defaultLogSize), cmp.Or(age, defaultLogAge)
	bytes, ok := parseSize(size)
	if !ok {
		return settings, fmt.Errorf("SERVICES_LOG_FILE_SIZE is %q: it must be a number of bytes, optionally followed by one of k, M, G, T, Ki, Mi, Gi, Ti, such as 100Mi", size)
	}
	if bytes > 0 {
		settings.FileSize = size
	}
	for _, duration := range []struct {
		name, value string
		into        *time.Duration
	}{{"SERVICES_LOG_FILE_AGE", age, &settings.FileAge}, {"SERVICES_LOG_FLUSH_INTERVAL", flush, &settings.FlushInterval}} {
		if duration.value == "" {
			continue
		}
		parsed, err := time.ParseDuration(duration.value)
		if err != nil || parsed < 0 {
			return LogSettings{}, fmt.Errorf("%s is %q: it must be a duration that is not negative, such as 168h",
				duration.name, duration.value)
		}
		*duration.into = parsed
	}
	return settings, nil
}
