package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/dynamic"
)

// The interval between reads of the objects. The prometheus-operator watches the objects instead, and its
// reloader checks every few seconds.
const look = time.Second

// follower keeps the files of Prometheus' pod up to date with the objects in the API server.
type follower struct {
	client   dynamic.Interface
	settings settings
	log      *slog.Logger

	written map[string][]byte
	failed  string // error of the last check
}

func (f *follower) run(ctx context.Context) {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		failed := ""
		if err := f.once(ctx); err != nil {
			failed = err.Error()
		}
		if failed != "" && failed != f.failed && ctx.Err() == nil {
			f.log.Error("Prometheus does not follow the objects in the API server", "error", failed)
		}
		f.failed = failed
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// once generates the files and writes changed files.
func (f *follower) once(ctx context.Context) error {
	found, err := read(ctx, f.client)
	if err != nil {
		return err
	}
	files, err := found.generate(f.settings)
	if err != nil || maps.EqualFunc(files, f.written, bytes.Equal) {
		return err
	}
	if err := f.write(files); err != nil {
		return err
	}
	f.written = files
	f.log.Info("Prometheus has a new configuration", "serviceMonitors", len(found.monitors), "prometheusRules", len(found.rules))
	return nil
}

// write writes the files and removes obsolete files. The configuration is written last.
func (f *follower) write(files map[string][]byte) error {
	config := filepath.Join(f.settings.root, configFile)
	for path := range f.written {
		if _, ok := files[path]; !ok {
			if err := os.Remove(path); err != nil {
				return fmt.Errorf("remove rules of Prometheus: %w", err)
			}
		}
	}
	for path, content := range files {
		if path == config {
			continue
		}
		if err := replace(path, content); err != nil {
			return err
		}
	}
	return replace(config, files[config])
}

// replace writes a file atomically.
func replace(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("make the folder of %s: %w", path, err)
	}
	fresh := filepath.Join(filepath.Dir(path), ".new")
	if err := os.WriteFile(fresh, content, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(fresh, path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
