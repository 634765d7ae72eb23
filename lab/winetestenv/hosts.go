// Package winetestenv adds Wine hosts to an environment, for tests and the demo. The hosts accept the environment's
// key, and have the lab's payload and the node program that the payload's executables start.
package winetestenv

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"golang.org/x/crypto/ssh"

	"github.com/windows-machine-config/wmco/lab/payload"
	"github.com/windows-machine-config/wmco/lab/testenv"
	"github.com/windows-machine-config/wmco/lab/wine"
	"github.com/windows-machine-config/wmco/lab/wine/standin"
)

// Kit holds the parts for Wine hosts of an environment.
type Kit struct {
	// Base is the base that all hosts are cloned from.
	Base *wine.Base
	// NodeProgram is the path of the program that standin.BuildNode builds.
	NodeProgram string
}

// Prepare builds the parts of hosts unless they exist: the base in wineDir, which may be "" (see wine.Prepare),
// and the node program in the file nodeProgram, in an existing directory. The working directory must be in the
// repository. The first run takes some minutes and needs the Debian archive and the Go modules: a program that
// enters lab/linuxns calls Prepare before entering, and again inside.
func Prepare(ctx context.Context, wineDir, nodeProgram string) (*Kit, error) {
	base, err := wine.Prepare(ctx, wineDir)
	if err != nil {
		return nil, err
	}
	return &Kit{Base: base, NodeProgram: nodeProgram}, standin.BuildNode(ctx, nodeProgram)
}

// Payload generates the payload of an operator version in dir, with the agent of that version. Wine hosts
// really run the executables.
func (k *Kit) Payload(dir, agent, version string, options payload.Options) (err error) {
	if options.Program, err = os.ReadFile(filepath.Join(k.Base.FakeDLLs, standin.Launcher)); err != nil {
		return fmt.Errorf("read what the payload's executables begin with: %w", err)
	}
	_, err = payload.Generate(dir, agent, version, options)
	return err
}

// AddHost creates and boots a host that accepts the environment's key for administrators. The caller closes the host
// before the environment.
func (k *Kit) AddHost(ctx context.Context, r *testenv.Environment, options wine.Options) (*wine.Host, error) {
	signer, err := ssh.ParsePrivateKey(r.PrivateKey())
	if err != nil {
		return nil, fmt.Errorf("read the key for host %s: %w", options.Name, err)
	}
	options.AuthorizedKeys = append(options.AuthorizedKeys, signer.PublicKey())
	h, err := k.newHost(ctx, options)
	if err != nil {
		return nil, err
	}
	if err := h.Start(ctx); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

// newHost creates a host that is off.
func (k *Kit) newHost(ctx context.Context, options wine.Options) (*wine.Host, error) {
	options.Base = k.Base
	files := map[string]string{standin.NodeProgram: k.NodeProgram}
	maps.Copy(files, options.Files)
	options.Files = files
	return wine.New(ctx, options)
}
