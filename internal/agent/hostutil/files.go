// Package hostutil reads complete files and directories of the host, writes the agent's own files, and finds
// processes. The package ends no process, and leaves the content of files to the NodeSpec or to the package
// that owns the file.
package hostutil

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
)

// ReadFile returns the content of a file, or nil if the file does not exist.
func ReadFile(ctx context.Context, files host.Files, path string) ([]byte, error) {
	file, err := files.Open(ctx, path)
	if errors.Is(err, host.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(file)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return data, nil
}

// ReadPrefix reads the first bytes of a file, or fewer if the file is shorter, without allocating more memory
// than needed.
func ReadPrefix(ctx context.Context, files host.Files, path string, size int64) ([]byte, error) {
	file, err := files.Open(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	defer func() { _ = file.Close() }()
	data := make([]byte, size)
	n, err := io.ReadFull(file, data)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return data[:n], nil
}

// FileDigest returns the SHA-256 of a file's content, in hexadecimal.
func FileDigest(ctx context.Context, files host.Files, path string) (string, error) {
	file, err := files.Open(ctx, path)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	defer func() { _ = file.Close() }()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// ListDirectory lists a directory; a missing directory has no entries.
func ListDirectory(ctx context.Context, files host.Files, path string) ([]host.FileInfo, error) {
	infos, err := files.ReadDir(ctx, path)
	if err != nil && !errors.Is(err, host.ErrNotExist) {
		return nil, fmt.Errorf("list %s: %w", path, err)
	}
	return infos, nil
}

// EnsureFile writes the data to a file of the agent, for administrators only, unless the file already has that
// content.
func EnsureFile(ctx context.Context, files host.Files, path string, data []byte) error {
	present, err := ReadFile(ctx, files, path)
	if err == nil && present != nil && bytes.Equal(present, data) {
		return nil
	}
	options := host.WriteOptions{Access: host.AccessAdministrators}
	if err := files.Write(ctx, path, bytes.NewReader(data), options); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// EnsureDirectory creates a missing directory, for administrators only. An existing directory is not changed.
func EnsureDirectory(ctx context.Context, h host.Host, path string) error {
	_, err := h.Files.Stat(ctx, path)
	if errors.Is(err, host.ErrNotExist) {
		err = h.Tree.MakeDirectory(ctx, path, host.AccessAdministrators)
	}
	if err != nil {
		return fmt.Errorf("create directory %s: %w", path, err)
	}
	return nil
}

// SplitPath splits a path into directory and name. The directory is empty if the path has none.
func SplitPath(path string) (folder, name string) {
	i := strings.LastIndexByte(path, '\\')
	return path[:max(i, 0)], path[i+1:]
}
