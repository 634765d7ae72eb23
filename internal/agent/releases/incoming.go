package releases

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/windows-machine-config/wmco/internal/agent/hostutil"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/payload"
)

// Incoming is the payload archive sent with a command. The archive is unpacked once, when the first file is
// needed, into a directory from where files are moved into their releases. Unpacked files survive a kill and
// are not sent again.
type Incoming struct {
	archive       string           // path; empty if none was sent
	sizesByDigest map[string]int64 // size of all files named by the spec, by digest
	unpacked      bool
	verified      map[string]bool // by this process
}

// NewIncoming returns the payload for a spec. The archive is a path on the host; empty if none was sent.
func NewIncoming(spec nodespec.NodeSpec, archive string) *Incoming {
	in := &Incoming{archive: archive, sizesByDigest: map[string]int64{}, verified: map[string]bool{}}
	for _, release := range spec.Releases {
		for _, file := range release.Files {
			in.sizesByDigest[file.SHA256] = file.Size
		}
	}
	return in
}

func incomingPath(sum string) string { return nodespec.IncomingRoot + `\` + sum }

// unpackArchive unpacks the missing files on the first call.
func (in *Incoming) unpackArchive(ctx context.Context, i *Installer) error {
	if in.unpacked || in.archive == "" {
		return nil
	}
	if err := hostutil.EnsureDirectory(ctx, i.Host, nodespec.IncomingRoot); err != nil {
		return err
	}
	archive, err := i.Host.Files.Open(ctx, in.archive)
	if err != nil {
		return fmt.Errorf("open the payload: %w", err)
	}
	defer func() { _ = archive.Close() }()
	err = payload.Unpack(archive, func(sum string, size int64, content io.Reader) error { return in.storeContent(ctx, i, sum, content) })
	if errors.Is(err, payload.ErrDamaged) {
		// A damaged archive is useless for the next attempt too.
		err = errors.Join(err, i.Host.Files.Remove(ctx, in.archive))
	}
	if err != nil {
		return fmt.Errorf("unpack %s: %w", in.archive, err)
	}
	in.unpacked = true
	return nil
}

// storeContent stores one file of the archive, or the result of a patch, if the spec names the file and the host lacks
// it.
func (in *Incoming) storeContent(ctx context.Context, i *Installer, sum string, content io.Reader) error {
	if _, wanted := in.sizesByDigest[sum]; !wanted {
		return in.applyPatch(ctx, i, content)
	}
	return in.writeFile(ctx, i, sum, content)
}

// applyPatch creates a file from a file on the host. An inapplicable patch is skipped: the missing file is then sent
// completely.
func (in *Incoming) applyPatch(ctx context.Context, i *Installer, content io.Reader) error {
	whole, is, err := payload.AsPatch(content)
	if err != nil || !is {
		return err
	}
	header, err := payload.ReadPatchHeader(whole)
	if err != nil {
		return err
	}
	old, there := i.Facts.Payload[header.FromSHA256]
	_, wanted := in.sizesByDigest[header.ToSHA256]
	if _, known := i.Facts.Payload[header.ToSHA256]; !wanted || !there || known {
		return nil
	}
	// The old file is read into memory, so its size must be correct.
	if info, err := i.Host.Files.Stat(ctx, old); err != nil || info.Size != header.FromSize {
		i.Progress("%s has changed and cannot be patched", old)
		if errors.Is(err, host.ErrNotExist) {
			return nil
		}
		return err
	}
	from, err := hostutil.ReadPrefix(ctx, i.Host.Files, old, header.FromSize)
	if err != nil {
		return err
	}
	patched, err := header.Apply(whole, from)
	if errors.Is(err, payload.ErrNotPatchable) {
		i.Progress("%s has changed and cannot be patched", old)
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(in.writeFile(ctx, i, header.ToSHA256, patched), patched.Close())
}

func (in *Incoming) writeFile(ctx context.Context, i *Installer, sum string, content io.Reader) error {
	if _, there := i.Facts.Payload[sum]; there {
		return nil
	}
	i.Progress("unpacking file %d of %d", len(in.verified)+1, len(in.sizesByDigest))
	if err := i.Host.Files.Write(ctx, incomingPath(sum), content, host.WriteOptions{Access: host.AccessInherited}); err != nil {
		return fmt.Errorf("write %s: %w", incomingPath(sum), err)
	}
	in.verified[sum] = true
	return nil
}

// verifyFile verifies the content of an unpacked file, unless this process has written the file.
func (in *Incoming) verifyFile(ctx context.Context, i *Installer, sum string) error {
	if in.verified[sum] {
		return nil
	}
	found, err := hostutil.FileDigest(ctx, i.Host.Files, incomingPath(sum))
	if err != nil {
		return err
	}
	if found == sum {
		return nil
	}
	err = fmt.Errorf("%w: the content of %s does not match its name", payload.ErrDamaged, incomingPath(sum))
	return errors.Join(err, i.Host.Files.Remove(ctx, incomingPath(sum)))
}
