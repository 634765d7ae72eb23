package main

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"time"
)

// look is the interval between reads of the configuration. The reloader in Prometheus' pod watches the file
// instead.
const look = time.Second

// reloader applies changes of the configuration and the rules. The rules are written before the configuration.
type reloader struct {
	file  string
	apply func(configuration []byte) error
	log   *slog.Logger

	applied time.Time // modification time of the applied file
	failed  string    // error of the last check
}

func (r *reloader) run(ctx context.Context) {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		failed := ""
		if err := r.once(); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = err.Error()
		}
		if failed != "" && failed != r.failed {
			r.log.Error("Prometheus keeps the configuration that it has", "file", r.file, "error", failed)
		}
		r.failed = failed
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (r *reloader) once() error {
	info, err := os.Stat(r.file)
	if err != nil || info.ModTime().Equal(r.applied) {
		return err
	}
	content, err := os.ReadFile(r.file)
	if err != nil {
		return err
	}
	if err := r.apply(content); err != nil {
		return err
	}
	r.applied = info.ModTime()
	r.log.Info("Prometheus follows a new configuration", "file", r.file)
	return nil
}
