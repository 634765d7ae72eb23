package components_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

const exporterModule = "github.com/prometheus-community/windows_exporter"

var (
	// collectorName is the name of a collector, which is part of the names of the collector's metrics.
	collectorName = regexp.MustCompile(`\bName\s*=\s*"([a-z_]+)"`)
	// description matches the creation of a metric description by a collector.
	description = regexp.MustCompile(`BuildFQName\(\s*types\.Namespace,\s*(Name|"[a-z0-9_]*"),\s*(Name|"[a-z0-9_]+"),?\s*\)`)
	// descriptions matches the creation of metric descriptions in any form.
	descriptions = regexp.MustCompile(`BuildFQName\(`)
	// readMetric matches an exporter metric in an expression.
	readMetric = regexp.MustCompile(`\bwindows_[a-z0-9_]+`)
)

// describedBy returns the names of the metrics that collectors describe in their source. Collectors create the
// descriptions at run time on Windows only: under Wine, most collectors fail before.
func describedBy(ctx context.Context, collectors []string) (map[string]bool, error) {
	output, err := forWindows(ctx, "windows_exporter", "list", "-m", "-f", "{{.Dir}}", exporterModule).Output()
	if err != nil {
		return nil, fmt.Errorf("find the source of windows_exporter: %w", err)
	}
	dir := strings.TrimSpace(string(output))
	names := map[string]bool{}
	for _, collector := range collectors {
		source, err := sourceOf(filepath.Join(dir, "internal", "collector", collector))
		if err != nil {
			return nil, err
		}
		name := collectorName.FindStringSubmatch(source)
		found := description.FindAllStringSubmatch(source, -1)
		if name == nil || len(found) == 0 || len(found) != len(descriptions.FindAllString(source, -1)) {
			return nil, fmt.Errorf("collector %s describes metrics in another form than expected", collector)
		}
		for _, parts := range found {
			names[joinMetricName("windows", name[1], parts[1:])] = true
		}
	}
	return names, nil
}

// joinMetricName returns the name of a metric: the parts that are not empty, with Name replaced by the name of the
// collector.
func joinMetricName(namespace, collector string, parts []string) string {
	name := namespace
	for _, part := range parts {
		if part = strings.Trim(strings.ReplaceAll(part, "Name", collector), `"`); part != "" {
			name += "_" + part
		}
	}
	return name
}

// sourceOf returns the Go code in a directory, without tests.
func sourceOf(dir string) (string, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(paths) == 0 {
		return "", fmt.Errorf("no Go code in %s: %w", dir, errors.Join(err, os.ErrNotExist))
	}
	var source strings.Builder
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		source.Write(content)
	}
	return source.String(), nil
}

// metricsIn returns the metrics of collectors that a text names. The prefix windows_exporter is excluded,
// because the service and the exporter's metrics about itself have the name of the program.
func metricsIn(text string) map[string]bool {
	names := map[string]bool{}
	for _, name := range readMetric.FindAllString(text, -1) {
		if !strings.HasPrefix(name, "windows_exporter") {
			names[name] = true
		}
	}
	return names
}
