package installdir

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/windows-machine-config/wmco/internal/agent/hostutil"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/payload"
)

// Program is the running program of the agent.
type Program struct {
	Version string
	Path    string

	digest string // cached by Sum
}

// Sum returns the SHA-256 of the program. A running program cannot change.
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

// IsInstalled reports whether the agent with the given SHA-256 is installed completely in its own directory.
func (p *Program) IsInstalled(ctx context.Context, in host.Files, sum string) (bool, error) {
	if len(sum) != sha256.Size*2 {
		return false, nil
	}
	path := nodespec.AgentPath(sum)
	if _, err := in.Stat(ctx, path); errors.Is(err, host.ErrNotExist) {
		return false, nil
	}
	own, err := p.Sum(ctx, in)
	if err != nil || own == sum && nodespec.IsSamePath(path, p.Path) {
		return err == nil, err
	}
	present, err := hostutil.FileDigest(ctx, in, path)
	return err == nil && present == sum, err
}

// installProgram copies the program to the path from which the operator and the service run it.
func (p *Program) installProgram(ctx context.Context, h host.Host) error {
	sum, err := p.Sum(ctx, h.Files)
	if err != nil {
		return err
	}
	if present, err := hostutil.FileDigest(ctx, h.Files, nodespec.AgentPath(sum)); err == nil && present == sum {
		return nil
	}
	program, err := h.Files.Open(ctx, p.Path)
	if err != nil {
		return fmt.Errorf("read the agent's own program: %w", err)
	}
	defer func() { _ = program.Close() }()
	return write(ctx, h, sum, program)
}

// write writes the program with the given digest to its own directory.
func write(ctx context.Context, h host.Host, sum string, program io.Reader) error {
	path := nodespec.AgentPath(sum)
	if err := restrictDirectory(ctx, h, strings.TrimSuffix(path, `\`+nodespec.AgentProgram)); err != nil {
		return err
	}
	if err := h.Files.Write(ctx, path, program, host.WriteOptions{Access: host.AccessAdministrators}); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// Patch creates another version of the agent from this program and a patch, and deletes the patch. A patch for
// another program, or a damaged patch, changes nothing: the operator then sends the complete program.
func (f *Directory) Patch(ctx context.Context, path string) error {
	if err := f.Guard(ctx); err != nil {
		return err
	}
	patch, err := f.Host.Files.Open(ctx, path)
	if err != nil {
		return fmt.Errorf("open the patch: %w", err)
	}
	err = f.applyPatch(ctx, patch)
	err = errors.Join(err, patch.Close(), f.Host.Files.Remove(ctx, path))
	if errors.Is(err, payload.ErrDamaged) || errors.Is(err, payload.ErrNotPatchable) {
		return &agentapi.Failure{Reason: agentapi.ReasonPayloadCorrupted, Message: err.Error()}
	}
	return err
}

func (f *Directory) applyPatch(ctx context.Context, patch io.Reader) error {
	header, err := payload.ReadPatchHeader(patch)
	if err != nil {
		return err
	}
	own, err := hostutil.ReadPrefix(ctx, f.Host.Files, f.Program.Path, header.FromSize)
	if err != nil {
		return fmt.Errorf("read the agent's own program: %w", err)
	}
	program, err := header.Apply(patch, own)
	if err != nil {
		return err
	}
	return errors.Join(write(ctx, f.Host, header.ToSHA256, program), program.Close())
}
