package main

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// seeder applies each defect to a copy of the tree. For a Go file, the copy is an overlay for the compiler. Other
// files are read while tests run and need a real copy.
type seeder struct {
	root string
	// tree is the directory of the real copies, which are created one after the other: Go's cache identifies
	// packages by path.
	tree     string
	treeLock sync.Mutex
}

func newSeeder(root string) *seeder {
	return &seeder{root: root, tree: filepath.Join(root, "build", "defects")}
}

// seedDefect applies a defect, runs the tests that must fail, and returns the verdict. The returned reason is appended
// to the printed line.
func (s *seeder) seedDefect(ctx context.Context, r row, baseline testRun) (v verdict, reason string) {
	if problem := baseline.mustPass(r.Fails); problem != "" {
		return broken, ": without the defect, " + problem
	}
	content, err := r.contentWithDefect(s.root)
	if err != nil {
		return broken, ": " + err.Error()
	}
	apply := s.testInOverlay
	if !strings.HasSuffix(r.File, ".go") {
		apply = s.testInCopy
	}
	result, err := apply(ctx, r, content)
	if err != nil {
		return broken, ": " + err.Error()
	}
	return result.computeVerdict(r.Fails)
}

// testInOverlay runs the tests with the defect in an overlay.
func (s *seeder) testInOverlay(ctx context.Context, r row, content []byte) (result testRun, err error) {
	dir, err := os.MkdirTemp("", "defect")
	if err != nil {
		return testRun{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file, overlay := filepath.Join(dir, filepath.Base(r.File)), filepath.Join(dir, "overlay.json")
	mapping, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(s.root,
		filepath.FromSlash(r.File)): file}})
	if err != nil {
		return testRun{}, err
	}
	if err := errors.Join(os.WriteFile(file, content, 0o600), os.WriteFile(overlay, mapping, 0o600)); err != nil {
		return testRun{}, err
	}
	return s.runTests(ctx, s.root, r.Package, r.Fails, overlay), nil
}

// testInCopy runs the tests in a copy of the tree that has the defect.
func (s *seeder) testInCopy(ctx context.Context, r row, content []byte) (result testRun, err error) {
	s.treeLock.Lock()
	defer s.treeLock.Unlock()
	defer func() { err = errors.Join(err, os.RemoveAll(s.tree)) }()
	if err := errors.Join(os.RemoveAll(s.tree), copyTree(s.root, s.tree)); err != nil {
		return testRun{}, err
	}
	if err := os.WriteFile(filepath.Join(s.tree, filepath.FromSlash(r.File)), content, 0o600); err != nil {
		return testRun{}, err
	}
	return s.runTests(ctx, s.tree, r.Package, r.Fails, ""), nil
}

// copyTree copies a checkout. Build results are not copied, but linked.
func copyTree(from, to string) error {
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, relative)
		switch {
		case entry.IsDir() && (relative == "build" || relative == ".git"):
			return fs.SkipDir
		case relative == ".git": // of a worktree
			return nil
		case entry.IsDir():
			return os.MkdirAll(target, 0o750)
		case !entry.Type().IsRegular():
			return nil
		}
		return copyFile(path, target)
	})
	return errors.Join(err, os.Symlink(filepath.Join(from, "build"), filepath.Join(to, "build")))
}

func copyFile(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, info.Mode().Perm())
}
