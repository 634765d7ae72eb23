package remote

import (
	"context"
	"fmt"
	"io"
	"regexp"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// Agent is the agent's program.
type Agent struct {
	// SHA256 is the lowercase hex digest of the program, Size its length in bytes.
	SHA256 string
	Size   int64
	// Open reads the program, whose content was compared with the digest. It is called only when the host lacks the program.
	Open func() (io.ReadCloser, error)
}

var hexDigest = regexp.MustCompile(`^[0-9a-f]{64}$`)

// EnsureAgent brings the agent to the host, to the folder in which it lands, if it is not there with its size, and
// returns its path and whether it was sent. Only administrators can write there, so a file with its name was sent by an
// operator. progress may be nil; see Upload.
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
