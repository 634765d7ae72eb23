package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// store keeps what the agent must remember, in files that only SYSTEM and administrators can read.
type store struct{ files host.Files }

// read returns the content of a file; nil when it is not there.
func (s store) read(ctx context.Context, path string) ([]byte, error) {
	file, err := s.files.Open(ctx, path)
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

// readSized reads a large file into no more memory than it needs: its first bytes, and fewer when it is shorter.
func (s store) readSized(ctx context.Context, path string, size int64) ([]byte, error) {
	file, err := s.files.Open(ctx, path)
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

// write makes the file hold the data, and does nothing when it does already.
func (s store) write(ctx context.Context, path string, data []byte) error {
	present, err := s.read(ctx, path)
	if err == nil && present != nil && bytes.Equal(present, data) {
		return nil
	}
	options := host.WriteOptions{Access: host.AccessAdministrators}
	if err := s.files.Write(ctx, path, bytes.NewReader(data), options); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// ledger is what the host was like before; known is false when nothing was ever changed.
func (s store) ledger(ctx context.Context) (ledger plan.Ledger, known bool, err error) {
	data, err := s.read(ctx, nodespec.LedgerPath)
	if err != nil || data == nil {
		return plan.Ledger{}, false, err
	}
	if err := json.Unmarshal(data, &ledger); err != nil {
		return plan.Ledger{}, false, fmt.Errorf("read %s, which says what the host was like before: %w", nodespec.LedgerPath, err)
	}
	return ledger, true, nil
}

func (s store) setLedger(ctx context.Context, ledger plan.Ledger) error {
	data, err := json.MarshalIndent(ledger, "", " ")
	if err != nil {
		return fmt.Errorf("encode the ledger: %w", err)
	}
	return s.write(ctx, nodespec.LedgerPath, data)
}

// errForeignSpec means that the NodeSpec on the host is not one of this release's agent.
var errForeignSpec = errors.New("it was not written by an agent of this release")

// spec is the NodeSpec that the host is held to; nil when there is none.
func (s store) spec(ctx context.Context) (*nodespec.NodeSpec, error) {
	data, err := s.read(ctx, nodespec.SpecPath)
	if err != nil || data == nil {
		return nil, err
	}
	spec, err := nodespec.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", nodespec.SpecPath, errForeignSpec, err)
	}
	return &spec, nil
}

func (s store) setSpec(ctx context.Context, spec nodespec.NodeSpec) error {
	data, err := spec.Encode()
	if err != nil {
		return fmt.Errorf("encode the NodeSpec: %w", err)
	}
	return s.write(ctx, nodespec.SpecPath, data)
}

// fallback is the NodeSpec that a rollback goes back to; nil when none is kept, or one that no agent of this release has kept.
func (s store) fallback(ctx context.Context) (*nodespec.NodeSpec, error) {
	data, err := s.read(ctx, nodespec.FallbackPath)
	if err != nil || data == nil {
		return nil, err
	}
	spec, err := nodespec.Decode(data)
	if err != nil {
		return nil, nil //nolint:nilerr // nobody can go back to it
	}
	return &spec, nil
}

func (s store) setFallback(ctx context.Context, spec nodespec.NodeSpec) error {
	data, err := spec.Encode()
	if err != nil {
		return fmt.Errorf("encode the NodeSpec: %w", err)
	}
	return s.write(ctx, nodespec.FallbackPath, data)
}

func (s store) forgetFallback(ctx context.Context) error {
	if err := s.files.Remove(ctx, nodespec.FallbackPath); err != nil {
		return fmt.Errorf("remove %s: %w", nodespec.FallbackPath, err)
	}
	return nil
}

// applied is the digest of the spec that was last applied to its end.
func (s store) applied(ctx context.Context) (string, error) {
	data, err := s.read(ctx, nodespec.AppliedPath)
	return string(bytes.TrimSpace(data)), err
}

func (s store) setApplied(ctx context.Context, digest string) error {
	return s.write(ctx, nodespec.AppliedPath, []byte(digest))
}

func (s store) forgetApplied(ctx context.Context) error {
	if err := s.files.Remove(ctx, nodespec.AppliedPath); err != nil {
		return fmt.Errorf("remove %s: %w", nodespec.AppliedPath, err)
	}
	return nil
}
