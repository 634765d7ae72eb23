package hosttest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/windows-machine-config/wmco/internal/host"
)

// conditionTimeout is the maximum wait for a condition on a slow machine.
const conditionTimeout = 30 * time.Second

// suite is the host for one behavior. Failures are collected instead of reported to testing.T, because marked
// behaviors are expected to fail.
type suite struct {
	host.Host
	machine Machine
	ctx     context.Context

	mu       sync.Mutex
	failures []string
	absent   string // the reason why the behavior cannot be shown on this machine
	endings  []func(context.Context) error
}

// Errorf records a failure.
func (s *suite) Errorf(format string, values ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures = append(s.failures, callerLine()+": "+fmt.Sprintf(format, values...))
}

// Fatalf records a failure and ends the behavior. It must be called on the behavior's goroutine.
func (s *suite) Fatalf(format string, values ...any) {
	s.Errorf(format, values...)
	runtime.Goexit()
}

// callerLine returns the source line of the failure in the behavior.
func callerLine() string {
	pcs := make([]uintptr, 16)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		frame, more := frames.Next()
		name := filepath.Base(frame.File)
		if name != "suite.go" || !more {
			return fmt.Sprintf("%s:%d", name, frame.Line)
		}
	}
}

// atEnd registers a cleanup function. After the behavior, all functions run in reverse order, regardless of the
// outcome.
func (s *suite) atEnd(ending func(context.Context) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endings = append(s.endings, ending)
}

// skipBehavior ends the behavior because the machine lacks a requirement.
func (s *suite) skipBehavior(format string, values ...any) {
	s.mu.Lock()
	s.absent = fmt.Sprintf(format, values...)
	s.mu.Unlock()
	runtime.Goexit()
}

// cleanUp removes leftovers of a behavior.
func (s *suite) cleanUp(ctx context.Context) error {
	s.mu.Lock()
	endings := slices.Clone(s.endings)
	s.mu.Unlock()
	var left []error
	for _, ending := range slices.Backward(endings) {
		left = append(left, ignoreNotExist(ending(ctx)))
	}
	for _, name := range []string{serviceTwo, serviceOne} {
		left = append(left, s.deleteService(ctx, name))
	}
	left = append(left, s.Files.Remove(ctx, Scratch), s.Environment.Unset(ctx, variable))
	return errors.Join(left...)
}

// deleteService stops and deletes a service. A service marked for deletion is deleted when its last handle is closed.
func (s *suite) deleteService(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, conditionTimeout)
	defer cancel()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		err := ignoreNotExist(s.Services.Stop(ctx, name))
		if err == nil {
			err = ignoreNotExist(s.Services.Delete(ctx, name))
		}
		if !errors.Is(err, host.ErrInUse) {
			return err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return err
		}
	}
}

// ignoreNotExist treats ErrNotExist as success.
func ignoreNotExist(err error) error {
	if errors.Is(err, host.ErrNotExist) {
		return nil
	}
	return err
}

func (s *suite) requireNoError(err error) {
	if errors.Is(err, ErrNotRun) {
		s.skipBehavior("%s", strings.TrimPrefix(err.Error(), ErrNotRun.Error()+": "))
	}
	if err != nil {
		s.Fatalf("%v", err)
	}
}

func (s *suite) requireError(err, want error) {
	if !errors.Is(err, want) {
		s.Fatalf("got error %v, want %v", err, want)
	}
}

// expectAnyError checks that there is any error.
func (s *suite) expectAnyError(what string, err error) {
	if err == nil {
		s.Errorf("%s: no error", what)
	}
}

func (s *suite) write(path, content string) {
	s.requireNoError(s.Files.Write(s.ctx, path, strings.NewReader(content), host.WriteOptions{Access: host.AccessInherited}))
}

func (s *suite) read(path string) string {
	reader, err := s.Files.Open(s.ctx, path)
	s.requireNoError(err)
	data, err := io.ReadAll(reader)
	s.requireNoError(errors.Join(err, reader.Close()))
	return string(data)
}

func (s *suite) statPath(path string) host.FileInfo {
	info, err := s.Files.Stat(s.ctx, path)
	s.requireNoError(err)
	return info
}

func (s *suite) makeDirectory(path string) {
	s.requireNoError(s.Tree.MakeDirectory(s.ctx, path, host.AccessInherited))
}

func (s *suite) systemInfo() host.SystemInfo {
	info, err := s.System.Info(s.ctx)
	s.requireNoError(err)
	return info
}

// waitUntil polls until the condition holds, because the interfaces provide no notifications.
func (s *suite) waitUntil(what string, condition func() bool) {
	deadline := time.NewTimer(conditionTimeout)
	defer deadline.Stop()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for !condition() {
		select {
		case <-again.C:
		case <-deadline.C:
			s.Fatalf("%s: not within %s", what, conditionTimeout)
		case <-s.ctx.Done():
			s.Fatalf("%s: not before the timeout of the behavior", what)
		}
	}
}

func expectEqual[T comparable](s *suite, what string, got, want T) {
	if got != want {
		s.Errorf("%s: got %v, want %v", what, got, want)
	}
}
