package releases

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"

	"github.com/windows-machine-config/wmco/internal/agent/hostutil"
	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/payload"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// Installer installs releases on a host.
type Installer struct {
	Host host.Host
	// Incoming is the received payload.
	Incoming *Incoming
	// Facts are the facts of the host. Installed files are added to Facts.Payload.
	Facts plan.Facts
	// Progress receives progress lines of an installation.
	Progress timeouts.ProgressFunc
}

// Install installs the files of a component, and completes the release with the manifest.
func (i *Installer) Install(ctx context.Context, release nodespec.Release) error {
	if err := hostutil.EnsureDirectory(ctx, i.Host, nodespec.ReleasesRoot); err != nil {
		return err
	}
	if err := hostutil.EnsureDirectory(ctx, i.Host, release.Directory); err != nil {
		return err
	}
	made := manifest{Component: release.Component, Version: release.Version}
	for index, file := range release.Files {
		i.Progress("installing %s, file %d of %d", file.Name, index+1, len(release.Files))
		if err := i.installFile(ctx, release, file); err != nil {
			return fmt.Errorf("install %s of %s %s: %w", file.Name, release.Component, release.Version, err)
		}
		info, err := i.Host.Files.Stat(ctx, release.Path(file))
		if err != nil {
			return fmt.Errorf("inspect %s: %w", release.Path(file), err)
		}
		made.Files = append(made.Files, manifestFile{Name: file.Name, SHA256: file.SHA256, Size: info.Size, Modified: info.Modified})
	}
	data, err := json.MarshalIndent(made, "", " ")
	if err != nil {
		return fmt.Errorf("encode the manifest of %s: %w", release.Component, err)
	}
	if err := i.Host.Files.Write(ctx, release.Manifest(), bytes.NewReader(data), host.WriteOptions{Access: host.AccessInherited}); err != nil {
		return fmt.Errorf("write %s: %w", release.Manifest(), err)
	}
	return nil
}

// installFile installs one file, from another release on the host or from the unpacked files.
func (i *Installer) installFile(ctx context.Context, release nodespec.Release, file nodespec.PayloadFile) error {
	target := release.Path(file)
	if i.Facts.Files[target].SHA256 == file.SHA256 {
		return nil
	}
	if err := i.createParents(ctx, release.Directory, file.Name); err != nil {
		return err
	}
	if source, ok := i.Facts.Payload[file.SHA256]; ok && !nodespec.IsWithin(source, nodespec.IncomingRoot) {
		return i.copyFile(ctx, source, target, file)
	}
	if err := i.Incoming.unpackArchive(ctx, i); err != nil {
		return err
	}
	source := incomingPath(file.SHA256)
	switch _, err := i.Host.Files.Stat(ctx, source); {
	case errors.Is(err, host.ErrNotExist):
		return &agentapi.Failure{Reason: agentapi.ReasonPayloadCorrupted, Message: fmt.Sprintf(
			"file %s of %s %s is neither on the host nor in the received payload; the operator sends the file with the next attempt", file.Name, release.Component, release.Version)}
	case err != nil:
		return fmt.Errorf("inspect %s: %w", source, err)
	}
	if err := i.Incoming.verifyFile(ctx, i, file.SHA256); err != nil {
		return err
	}
	if err := i.Host.Tree.Rename(ctx, source, target); err != nil {
		return fmt.Errorf("move %s to %s: %w", source, target, err)
	}
	i.Facts.Payload[file.SHA256] = target
	return nil
}

// createParents creates the directories between the directory of a release and one of its files.
func (i *Installer) createParents(ctx context.Context, directory, name string) error {
	parts := strings.Split(name, `\`)
	for _, part := range parts[:len(parts)-1] {
		directory += `\` + part
		if err := hostutil.EnsureDirectory(ctx, i.Host, directory); err != nil {
			return err
		}
	}
	return nil
}

// copyFile copies a file of another release. If the content does not match that release's manifest, the
// manifest is removed. The next facts then ignore the release, and the operator sends the file.
func (i *Installer) copyFile(ctx context.Context, source, target string, file nodespec.PayloadFile) error {
	content, err := i.Host.Files.Open(ctx, source)
	if err != nil {
		return fmt.Errorf("read %s: %w", source, err)
	}
	defer func() { _ = content.Close() }()
	checked := &checkedReader{source: content, hash: sha256.New(), sum: file.SHA256, name: source}
	err = i.Host.Files.Write(ctx, target, checked, host.WriteOptions{Access: host.AccessInherited})
	if errors.Is(err, payload.ErrDamaged) {
		manifest := source[:strings.LastIndexByte(source, '\\')+1] + nodespec.ReleaseManifest
		err = errors.Join(err, i.Host.Files.Remove(ctx, manifest))
	}
	if err != nil {
		return fmt.Errorf("copy %s to %s: %w", source, target, err)
	}
	return nil
}

// checkedReader returns an error at the end of content that does not match the digest.
type checkedReader struct {
	source io.Reader
	hash   hash.Hash
	sum    string
	name   string
}

// Read implements io.Reader.
func (r *checkedReader) Read(b []byte) (int, error) {
	n, err := r.source.Read(b)
	r.hash.Write(b[:n])
	if errors.Is(err, io.EOF) && hex.EncodeToString(r.hash.Sum(nil)) != r.sum {
		return n, fmt.Errorf("%w: the content of %s does not match its digest %s", payload.ErrDamaged, r.name, r.sum)
	}
	return n, err
}
