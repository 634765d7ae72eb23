package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// requestCertificate makes the key of an identity with its request, in one file so that neither is ever there without the other. One that
// waits already for the same identity is kept.
func (e *executor) requestCertificate(ctx context.Context, identity nodespec.Identity) error {
	waiting, err := e.pending(ctx, identity)
	if err != nil {
		return err
	}
	if waiting != nil && waiting.matches(identity) {
		return nil
	}
	if err := e.ensureDirectory(ctx, identity.Directory); err != nil {
		return err
	}
	data, err := newPending(e.rand, identity)
	if err != nil {
		return err
	}
	return e.writeSecret(ctx, pendingFile(identity), data)
}

func (e *executor) writeSecret(ctx context.Context, path string, data []byte) error {
	if err := e.host.Files.Write(ctx, path, bytes.NewReader(data), host.WriteOptions{Access: host.AccessAdministrators}); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// installCertificate lays the signed certificate out with its key as client-go's certificate store does: one file with both, and a link
// to it. The file is named after the certificate, so that a second attempt writes the same one.
func (e *executor) installCertificate(ctx context.Context, identity nodespec.Identity) error {
	waiting, err := e.pending(ctx, identity)
	if err != nil {
		return err
	}
	if waiting == nil {
		return errors.New("no key waits for the certificate any more")
	}
	key, err := encodeKey(waiting.key)
	if err != nil {
		return err
	}
	certificate := bytes.TrimSpace([]byte(identity.Certificate))
	data := append(append(certificate, '\n'), key...)
	installed := parsePair(data)
	if installed == nil || len(installed.chain) == 0 {
		return &verb.Failure{Reason: verb.ReasonInvalidInput, Message: "the certificate was not signed for the key that waits on the host"}
	}
	path := identity.Path(installed.chain[0].NotBefore.UTC().Format("2006-01-02-15-04-05"))
	if err := e.writeSecret(ctx, path, data); err != nil {
		return err
	}
	link := currentLink(identity)
	if err := e.clearFile(ctx, link); err != nil {
		return err
	}
	if err := e.host.Tree.Symlink(ctx, path, link); err != nil {
		return fmt.Errorf("make link %s to %s: %w", link, path, err)
	}
	return e.removeAll(ctx, pendingFile(identity))
}

// clearFile takes away a plain file where a link belongs.
func (e *executor) clearFile(ctx context.Context, link string) error {
	info, err := e.host.Files.Stat(ctx, link)
	if errors.Is(err, host.ErrNotExist) || err == nil && info.LinkTarget != "" {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at %s: %w", link, err)
	}
	return e.removeAll(ctx, link)
}
