package installdir

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	"github.com/windows-machine-config/wmco/internal/agent/hostutil"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// Program is the agent's own program, which runs.
type Program struct {
	Version string
	Path    string

	digest string // once it was read
}

// Sum returns the SHA-256 of the program. It cannot change while it runs.
func (p *Program) Sum(ctx context.Context, in host.Files) (string, error) {
	if p.digest == "" {
		sum, err := hostutil.FileDigest(ctx, in, p.Path)
		if err != nil {
			return "", fmt.Errorf("read the agent's own program: %w", err)
		}
		p.digest = sum
	}
	return p.digest, nil
}

// Beside reports whether the agent with the given SHA-256 lies whole in its own folder.
func (p *Program) Beside(ctx context.Context, in host.Files, sum string) (bool, error) {
	if len(sum) != sha256.Size*2 {
		return false, nil
	}
	path := nodespec.AgentPath(sum)
	if _, err := in.Stat(ctx, path); errors.Is(err, host.ErrNotExist) {
		return false, nil
	}
	own, err := p.Sum(ctx, in)
	if err != nil || own == sum && nodespec.SamePath(path, p.Path) {
		return err == nil, err
	}
	present, err := hostutil.FileDigest(ctx, in, path)
	return err == nil && present == sum, err
}

// layOut puts the program to its place, from which the operator and the service run it.
func (p *Program) layOut(ctx context.Context, h host.Host) error {
	sum, err := p.Sum(ctx, h.Files)
	if err != nil {
		return err
	}
	path := nodespec.AgentPath(sum)
	if present, err := hostutil.FileDigest(ctx, h.Files, path); err == nil && present == sum {
		return nil
	}
	if err := closeFolder(ctx, h, strings.TrimSuffix(path, `\`+nodespec.AgentProgram)); err != nil {
		return err
	}
	program, err := h.Files.Open(ctx, p.Path)
	if err != nil {
		return fmt.Errorf("read the agent's own program: %w", err)
	}
	defer func() { _ = program.Close() }()
	if err := h.Files.Write(ctx, path, program, host.WriteOptions{Access: host.AccessAdministrators}); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
