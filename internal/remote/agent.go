package remote

import (
	"context"
	"fmt"
	"io"
	"regexp"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// Agent is the agent executable.
type Agent struct {
	// SHA256 is the lowercase hex digest of the executable, Size its length in bytes.
	SHA256 string
	Size   int64
	// Open opens the executable after verification of the content against the digest. It is called only if the host
	// lacks the executable.
	Open func() (io.ReadCloser, error)
}

var hexDigest = regexp.MustCompile(`^[0-9a-f]{64}$`)

// EnsureAgent copies the agent to the landing directory unless the host already has a file of that size there. It
// returns the path and whether the agent was copied. Only administrators can write to the directory, so a file with
// that name was copied by an operator. progress may be nil; see Upload.
func (c *Connection) EnsureAgent(ctx context.Context, agent Agent, progress func(done, total int64)) (path string,
	sent bool, err error) {
	if !hexDigest.MatchString(agent.SHA256) {
		return "", false, fmt.Errorf("%q is not a SHA-256 digest", agent.SHA256)
	}
	path = nodespec.LandingPath(agent.SHA256)
	there, err := c.Has(ctx, path, agent.Size)
	if err != nil {
		return "", false, err
	}
	if there {
		return path, false, nil
	}
	program, err := agent.Open()
	if err != nil {
		return "", false, fmt.Errorf("read the agent's program: %w", err)
	}
	defer func() { _ = program.Close() }()
	if err := c.Upload(ctx, path, agent.Size, program, progress); err != nil {
		return "", false, err
	}
	return path, true, nil
}
