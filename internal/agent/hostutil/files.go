// Package hostutil reads complete files and directories of the host, writes the agent's own files, and finds processes.
// It ends no process, and the content of a file is up to the NodeSpec or to the package that keeps the file.
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

// ReadFile returns the content of a file; nil when it is not there.
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

// ReadPrefix reads a large file into no more memory than it needs: its first bytes, and fewer when it is shorter.
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

// ListDirectory lists a folder; nothing when it is not there.
func ListDirectory(ctx context.Context, files host.Files, path string) ([]host.FileInfo, error) {
	infos, err := files.ReadDir(ctx, path)
	if err != nil && !errors.Is(err, host.ErrNotExist) {
		return nil, fmt.Errorf("list %s: %w", path, err)
	}
	return infos, nil
}

// KeepFile makes a file of the agent's hold the data, for administrators only. It does nothing when the file holds them
// already.
func KeepFile(ctx context.Context, files host.Files, path string, data []byte) error {
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

// EnsureDirectory makes a folder that is not there, for administrators only. One that is there stays as it is.
func EnsureDirectory(ctx context.Context, h host.Host, path string) error {
	_, err := h.Files.Stat(ctx, path)
	if errors.Is(err, host.ErrNotExist) {
		err = h.Tree.MakeDirectory(ctx, path, host.AccessAdministrators)
	}
	if err != nil {
		return fmt.Errorf("make folder %s: %w", path, err)
	}
	return nil
}

// SplitPath parts a path into its folder and its name. The folder is empty when the path has none.
func SplitPath(path string) (folder, name string) {
	i := strings.LastIndexByte(path, '\\')
	return path[:max(i, 0)], path[i+1:]
}
