package remote

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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
	// Open reads the program; it is called only when the host lacks it.
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
	if err := c.Upload(ctx, path, agent.Size, newDigestReader(program, agent), progress); err != nil {
		return "", false, err
	}
	return path, true, nil
}

// digestReader fails at the end of its input when its digest is wrong: before the file on the host gets its name.
type digestReader struct {
	io.Reader
	sum  func() string
	want string
}

func newDigestReader(r io.Reader, agent Agent) io.Reader {
	hash := sha256.New()
	return &digestReader{
		Reader: io.TeeReader(r, hash),
		sum:    func() string { return hex.EncodeToString(hash.Sum(nil)) },
		want:   agent.SHA256,
	}
}

func (r *digestReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err == io.EOF && r.sum() != r.want {
		return n, fmt.Errorf("the content of the program does not match its digest")
	}
	return n, err
}
