package nodespec

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// LogSettings configure the log rotation of all services.
type LogSettings struct {
	FileSize      string        // a Kubernetes quantity of bytes, "100Mi"; zero disables rotation
	FileAge       time.Duration // older rotated files are deleted; zero keeps all
	FlushInterval time.Duration // interval of kube-log-runner's writes; zero for its default
}

// Defaults for unset environment variables of the operator.
const (
	defaultLogSize = "100Mi"
	defaultLogAge  = "168h"
)

// maxLogSize is larger than any disk; larger numbers are rejected as mistakes.
const maxLogSize = 1 << 50

// fileSize matches the Kubernetes quantities that are sensible file sizes. The suffix for 1000 is a lowercase k.
var fileSize = regexp.MustCompile(`^([0-9]{1,15})([kMGT]|[KMGT]i)?$`)

var sizeUnits = map[string]float64{
	"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40,
}

func parseSize(size string) (bytes int64, ok bool) {
	parts := fileSize.FindStringSubmatch(size)
	if parts == nil {
		return 0, false
	}
	// Both factors are exact in 53 bits, and so is each accepted product.
	number, err := strconv.ParseFloat(parts[1], 64)
	if product := number * sizeUnits[parts[2]]; err == nil && product <= maxLogSize {
		return int64(product), true
	}
	return 0, false
}

// fileSizeBytes returns FileSize in bytes; zero disables rotation by size.
func (s LogSettings) fileSizeBytes() int64 {
	bytes, _ := parseSize(s.FileSize)
	return bytes
}

// ParseLogSettings parses the operator's environment variables SERVICES_LOG_FILE_SIZE, SERVICES_LOG_FILE_AGE and
// SERVICES_LOG_FLUSH_INTERVAL. Empty values select the defaults; zeros disable the setting.
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
