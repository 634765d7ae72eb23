package nodespec

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// LogSettings rotate the logs of services that log through kube-log-runner. Zero fields leave rotation off.
type LogSettings struct {
	FileSize      string        // a Kubernetes quantity of bytes: "100Mi"
	FileAge       time.Duration // older rotated files are deleted
	FlushInterval time.Duration
}

// fileSize is the part of Kubernetes' quantities that makes sense as a size of files. The suffix for 1000 is a small k.
var fileSize = regexp.MustCompile(`^[0-9]{1,15}([kMGT]|[KMGT]i)?$`)

// ParseLogSettings reads the operator's environment variables SERVICES_LOG_FILE_SIZE, SERVICES_LOG_FILE_AGE and
// SERVICES_LOG_FLUSH_INTERVAL. Empty values and zeros leave off what they would set.
func ParseLogSettings(size, age, flush string) (LogSettings, error) {
	var settings LogSettings
	if size != "" && !fileSize.MatchString(size) {
		return settings, fmt.Errorf("SERVICES_LOG_FILE_SIZE is %q: it must be a number of bytes, with one of k, M, G, T, Ki, Mi, Gi, Ti behind it if need be, such as 100Mi", size)
	}
	if strings.Trim(size, "0") != "" {
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
			return LogSettings{}, fmt.Errorf("%s is %q: it must be a duration that is not negative, such as 168h", duration.name, duration.value)
		}
		*duration.into = parsed
	}
	return settings, nil
}

// arguments are the flags of kube-log-runner. Source: k8s.io/component-base/logs/kube-log-runner.
func (s LogSettings) arguments() []string {
	var arguments []string
	if s.FileSize != "" {
		arguments = append(arguments, "-log-file-size="+s.FileSize)
	}
	if s.FileAge > 0 {
		arguments = append(arguments, "-log-file-age="+s.FileAge.String())
	}
	if s.FlushInterval > 0 {
		arguments = append(arguments, "-flush-interval="+s.FlushInterval.String())
	}
	return arguments
}
