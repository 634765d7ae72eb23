package agent

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/payload"
)

// incoming is the payload archive that came with a verb. It is unpacked once, when the first file is needed, into a folder from which
// the files are moved into their releases. What is unpacked survives a kill and is not sent again.
type incoming struct {
	archive  string           // path; empty when none was sent
	wanted   map[string]int64 // size by digest of all files that the spec names
	unpacked bool
	verified map[string]bool // by this process
}

func newIncoming(spec nodespec.NodeSpec, archive string) *incoming {
	in := &incoming{archive: archive, wanted: map[string]int64{}, verified: map[string]bool{}}
	for _, release := range spec.Releases {
		for _, file := range release.Files {
			in.wanted[file.SHA256] = file.Size
		}
	}
	return in
}

func incomingPath(sum string) string { return nodespec.IncomingRoot + `\` + sum }

// unpack unpacks what the host lacks, the first time that it is called.
func (in *incoming) unpack(ctx context.Context, e *executor) error {
	if in.unpacked || in.archive == "" {
		return nil
	}
	if err := e.ensureDirectory(ctx, nodespec.IncomingRoot); err != nil {
		return err
	}
	archive, err := e.host.Files.Open(ctx, in.archive)
	if err != nil {
		return fmt.Errorf("open the payload: %w", err)
	}
	defer func() { _ = archive.Close() }()
	err = payload.Unpack(archive, func(sum string, size int64, content io.Reader) error { return in.put(ctx, e, sum, content) })
	if errors.Is(err, payload.ErrDamaged) {
		// A damaged archive is of no use to the next attempt either.
		err = errors.Join(err, e.host.Files.Remove(ctx, in.archive))
	}
	if err != nil {
		return fmt.Errorf("unpack %s: %w", in.archive, err)
	}
	in.unpacked = true
	return nil
}

// put keeps one file of the archive, or the one that a patch makes, if the spec wants it and the host lacks it.
func (in *incoming) put(ctx context.Context, e *executor, sum string, content io.Reader) error {
	if _, wanted := in.wanted[sum]; !wanted {
		return in.patch(ctx, e, content)
	}
	return in.keep(ctx, e, sum, content)
}

// patch makes a file of one that the host has. A patch that does not fit is left: what it was to make is then missing, and is sent whole.
func (in *incoming) patch(ctx context.Context, e *executor, content io.Reader) error {
	whole, is, err := payload.AsPatch(content)
	if err != nil || !is {
		return err
	}
	header, err := payload.ReadPatchHeader(whole)
	if err != nil {
		return err
	}
	old, there := e.facts.Payload[header.FromSHA256]
	_, wanted := in.wanted[header.ToSHA256]
	if _, known := e.facts.Payload[header.ToSHA256]; !wanted || !there || known {
		return nil
	}
	// It is read into memory: nothing but a file of the right size is.
	if info, err := e.host.Files.Stat(ctx, old); err != nil || info.Size != header.FromSize {
		e.progress("%s is not what it was: it cannot be patched", old)
		return absentIsFine(err)
	}
	from, err := e.store.readSized(ctx, old, header.FromSize)
	if err != nil {
		return err
	}
	patched, err := header.Apply(whole, from)
	if errors.Is(err, payload.ErrNotPatchable) {
		e.progress("%s is not what it was: it cannot be patched", old)
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(in.keep(ctx, e, header.ToSHA256, patched), patched.Close())
}

// keep writes one file.
func (in *incoming) keep(ctx context.Context, e *executor, sum string, content io.Reader) error {
	if _, there := e.facts.Payload[sum]; there {
		return nil
	}
	e.progress("unpacks file %d of %d", len(in.verified)+1, len(in.wanted))
	if err := e.host.Files.Write(ctx, incomingPath(sum), content, host.WriteOptions{Access: host.AccessInherited}); err != nil {
		return fmt.Errorf("write %s: %w", incomingPath(sum), err)
	}
	in.verified[sum] = true
	return nil
}

// check makes sure that an unpacked file has its content, unless this process has written it.
func (in *incoming) check(ctx context.Context, e *executor, sum string) error {
	if in.verified[sum] {
		return nil
	}
	found, err := e.hashFile(ctx, incomingPath(sum))
	if err != nil {
		return err
	}
	if found == sum {
		return nil
	}
	err = fmt.Errorf("%w: %s has another content than its name says", payload.ErrDamaged, incomingPath(sum))
	return errors.Join(err, e.host.Files.Remove(ctx, incomingPath(sum)))
}
