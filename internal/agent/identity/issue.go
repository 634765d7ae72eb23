package identity

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/windows-machine-config/wmco/internal/agent/hostutil"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// Request creates the key and the certificate request of an identity, in one file so that neither exists
// without the other. A pending request for the same identity is kept.
func Request(ctx context.Context, h host.Host, random io.Reader, identity nodespec.Identity) error {
	waiting, err := Pending(ctx, h.Files, identity)
	if err != nil {
		return err
	}
	if waiting != nil && waiting.isRequestFor(identity) {
		return nil
	}
	if err := hostutil.EnsureDirectory(ctx, h, identity.Directory); err != nil {
		return err
	}
	data, err := newPending(random, identity)
	if err != nil {
		return err
	}
	return writeSecret(ctx, h.Files, PendingFile(identity), data)
}

func writeSecret(ctx context.Context, to host.Files, path string, data []byte) error {
	if err := to.Write(ctx, path, bytes.NewReader(data), host.WriteOptions{Access: host.AccessAdministrators}); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// Install installs the signed certificate and its key like the certificate store of client-go: one file with
// both, and a link to the file. The file is named after the certificate, so a retry writes the same file.
func Install(ctx context.Context, h host.Host, identity nodespec.Identity) error {
	waiting, err := Pending(ctx, h.Files, identity)
	if err != nil {
		return err
	}
	if waiting == nil {
		return errors.New("the pending key of the certificate no longer exists")
	}
	key, err := encodeKey(waiting.Key)
	if err != nil {
		return err
	}
	certificate := bytes.TrimSpace([]byte(identity.Certificate))
	data := append(append(certificate, '\n'), key...)
	installed := parsePair(data)
	if installed == nil || len(installed.Chain) == 0 {
		return &agentapi.Failure{Reason: agentapi.ReasonInvalidInput, Message: "the certificate does not match the pending key on the host"}
	}
	path := identity.Path(installed.Chain[0].NotBefore.UTC().Format("2006-01-02-15-04-05"))
	if err := writeSecret(ctx, h.Files, path, data); err != nil {
		return err
	}
	link := currentLink(identity)
	if err := clearFile(ctx, h.Files, link); err != nil {
		return err
	}
	if err := h.Tree.Symlink(ctx, path, link); err != nil {
		return fmt.Errorf("create symbolic link %s to %s: %w", link, path, err)
	}
	return removeFile(ctx, h.Files, PendingFile(identity))
}

// clearFile removes a regular file at the path of a link.
func clearFile(ctx context.Context, in host.Files, link string) error {
	info, err := in.Stat(ctx, link)
	if errors.Is(err, host.ErrNotExist) || err == nil && info.LinkTarget != "" {
		return nil
	}
	if err != nil {
		return fmt.Errorf("inspect %s: %w", link, err)
	}
	return removeFile(ctx, in, link)
}

func removeFile(ctx context.Context, from host.Files, path string) error {
	if err := from.Remove(ctx, path); err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	return nil
}
