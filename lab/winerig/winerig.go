// Package winerig adds Wine hosts to a rig, for tests and the demo: hosts that know the rig's key and have the program
// that the executables of the lab's payload start, and that payload.
package winerig

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"golang.org/x/crypto/ssh"

	"github.com/windows-machine-config/wmco/lab/payload"
	"github.com/windows-machine-config/wmco/lab/rig"
	"github.com/windows-machine-config/wmco/lab/wine"
	"github.com/windows-machine-config/wmco/lab/wine/standin"
)

// Kit holds the parts for Wine hosts of a rig.
type Kit struct {
	// Base is what all hosts are clones of.
	Base *wine.Base
	// NodeProgram is the file of the program that standin.BuildNode makes.
	NodeProgram string
}

// Prepare makes what hosts are made of, unless it is there already: the base in wineDir, which may be "" (see
// wine.Prepare), and the node program in the file nodeProgram, whose folder must exist. The working directory must be
// in the repository. The first time takes some minutes and needs Debian's archive and Go's modules: a program that goes
// into lab/namespace calls it before, and again inside.
func Prepare(ctx context.Context, wineDir, nodeProgram string) (*Kit, error) {
	base, err := wine.Prepare(ctx, wineDir)
	if err != nil {
		return nil, err
	}
	return &Kit{Base: base, NodeProgram: nodeProgram}, standin.BuildNode(ctx, nodeProgram)
}

// Payload makes in dir the payload of a version of the operator, with the agent of that version; Wine hosts really run
// its executables.
func (k *Kit) Payload(dir, agent, version string, options payload.Options) (err error) {
	if options.Program, err = os.ReadFile(filepath.Join(k.Base.StandIns, standin.Launcher)); err != nil {
		return fmt.Errorf("read what the payload's executables begin with: %w", err)
	}
	_, err = payload.Generate(dir, agent, version, options)
	return err
}

// AddHost makes a host whose administrators have the rig's key, and boots it. The caller closes it, before the rig.
func (k *Kit) AddHost(ctx context.Context, r *rig.Rig, options wine.Options) (*wine.Host, error) {
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

// newHost makes a host that is off.
func (k *Kit) newHost(ctx context.Context, options wine.Options) (*wine.Host, error) {
	options.Base = k.Base
	files := map[string]string{standin.NodeProgram: k.NodeProgram}
	maps.Copy(files, options.Files)
	options.Files = files
	return wine.New(ctx, options)
}
