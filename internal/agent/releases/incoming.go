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

// Incoming is the payload archive that came with a verb. It is unpacked once, when the first file is needed, into a
// folder from which the files are moved into their releases. What is unpacked survives a kill and is not sent again.
type Incoming struct {
	archive  string           // path; empty when none was sent
	wanted   map[string]int64 // size by digest of all files that the spec names
	unpacked bool
	verified map[string]bool // by this process
}

// NewIncoming returns what came for a spec. The archive is a path on the host; empty when none was sent.
func NewIncoming(spec nodespec.NodeSpec, archive string) *Incoming {
	in := &Incoming{archive: archive, wanted: map[string]int64{}, verified: map[string]bool{}}
	for _, release := range spec.Releases {
		for _, file := range release.Files {
			in.wanted[file.SHA256] = file.Size
		}
	}
	return in
}

func incomingPath(sum string) string { return nodespec.IncomingRoot + `\` + sum }

// unpack unpacks what the host lacks, the first time that it is called.
func (in *Incoming) unpack(ctx context.Context, i *Installer) error {
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
	err = payload.Unpack(archive, func(sum string, size int64, content io.Reader) error { return in.put(ctx, i, sum, content) })
	if errors.Is(err, payload.ErrDamaged) {
		// A damaged archive is of no use to the next attempt either.
		err = errors.Join(err, i.Host.Files.Remove(ctx, in.archive))
	}
	if err != nil {
		return fmt.Errorf("unpack %s: %w", in.archive, err)
	}
	in.unpacked = true
	return nil
}

// put keeps one file of the archive, or the one that a patch makes, if the spec wants it and the host lacks it.
func (in *Incoming) put(ctx context.Context, i *Installer, sum string, content io.Reader) error {
	if _, wanted := in.wanted[sum]; !wanted {
		return in.patch(ctx, i, content)
	}
	return in.keep(ctx, i, sum, content)
}

// patch makes a file of one that the host has. A patch that does not fit is left: what it was to make is then missing,
// and is sent whole.
func (in *Incoming) patch(ctx context.Context, i *Installer, content io.Reader) error {
	whole, is, err := payload.AsPatch(content)
	if err != nil || !is {
		return err
	}
	header, err := payload.ReadPatchHeader(whole)
	if err != nil {
		return err
	}
	old, there := i.Facts.Payload[header.FromSHA256]
	_, wanted := in.wanted[header.ToSHA256]
	if _, known := i.Facts.Payload[header.ToSHA256]; !wanted || !there || known {
		return nil
	}
	// It is read into memory: nothing but a file of the right size is.
	if info, err := i.Host.Files.Stat(ctx, old); err != nil || info.Size != header.FromSize {
		i.Tell("%s has changed and cannot be patched", old)
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
		i.Tell("%s has changed and cannot be patched", old)
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(in.keep(ctx, i, header.ToSHA256, patched), patched.Close())
}

// keep writes one file.
func (in *Incoming) keep(ctx context.Context, i *Installer, sum string, content io.Reader) error {
	if _, there := i.Facts.Payload[sum]; there {
		return nil
	}
	i.Tell("unpacks file %d of %d", len(in.verified)+1, len(in.wanted))
	if err := i.Host.Files.Write(ctx, incomingPath(sum), content, host.WriteOptions{Access: host.AccessInherited}); err != nil {
		return fmt.Errorf("write %s: %w", incomingPath(sum), err)
	}
	in.verified[sum] = true
	return nil
}

// check makes sure that an unpacked file has its content, unless this process has written it.
func (in *Incoming) check(ctx context.Context, i *Installer, sum string) error {
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
