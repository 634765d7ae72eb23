// Package files reads whole files and folders of the host, and writes the agent's own. It has no opinion on what a file
// should hold: that is in the NodeSpec, or in the room that keeps the file.
package files

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

// Read returns the content of a file; nil when it is not there.
func Read(ctx context.Context, files host.Files, path string) ([]byte, error) {
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

// ReadSized reads a large file into no more memory than it needs: its first bytes, and fewer when it is shorter.
func ReadSized(ctx context.Context, files host.Files, path string, size int64) ([]byte, error) {
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

// Sum returns the SHA-256 of a file's content, in hexadecimal.
func Sum(ctx context.Context, files host.Files, path string) (string, error) {
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

// List lists a folder; nothing when it is not there.
func List(ctx context.Context, files host.Files, path string) ([]host.FileInfo, error) {
	infos, err := files.ReadDir(ctx, path)
	if err != nil && !errors.Is(err, host.ErrNotExist) {
		return nil, fmt.Errorf("list %s: %w", path, err)
	}
	return infos, nil
}

// Keep makes a file of the agent's hold the data, for administrators only. It does nothing when the file holds them
// already.
func Keep(ctx context.Context, files host.Files, path string, data []byte) error {
	present, err := Read(ctx, files, path)
	if err == nil && present != nil && bytes.Equal(present, data) {
		return nil
	}
	options := host.WriteOptions{Access: host.AccessAdministrators}
	if err := files.Write(ctx, path, bytes.NewReader(data), options); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// EnsureFolder makes a folder that is not there, for administrators only. One that is there stays as it is.
func EnsureFolder(ctx context.Context, h host.Host, path string) error {
	_, err := h.Files.Stat(ctx, path)
	if errors.Is(err, host.ErrNotExist) {
		err = h.Tree.MakeDirectory(ctx, path, host.AccessAdministrators)
	}
	if err != nil {
		return fmt.Errorf("make folder %s: %w", path, err)
	}
	return nil
}

// Split parts a path into its folder and its name. The folder is empty when the path has none.
func Split(path string) (folder, name string) {
	i := strings.LastIndexByte(path, '\\')
	return path[:max(i, 0)], path[i+1:]
}
