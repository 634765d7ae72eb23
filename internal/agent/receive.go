package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/payload"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// A new agent that is a little different from the one that runs is sent as the difference, and the one that runs lays it out. So an upgrade
// sends no whole program, and nothing runs before it was checked.

// receive lays out the agent with the given sha256 that came in an archive: as it is, or as a patch to the own program. It changes nothing
// else, and may be asked for again.
func (a *agent) receive(ctx context.Context, sum, archive string) error {
	path := nodespec.AgentPath(sum)
	present, err := a.hashFile(ctx, path)
	if err != nil && !errors.Is(err, host.ErrNotExist) {
		return err
	}
	if present != sum {
		if err := a.layOut(ctx, path, sum, archive); err != nil {
			return err
		}
	}
	a.answer.result(verb.Result{})
	return nil
}

// layOut writes the agent of the archive to its path.
func (a *agent) layOut(ctx context.Context, path, sum, archive string) error {
	r := &receiver{agent: a, path: path, sum: sum}
	packed, err := a.host.Files.Open(ctx, archive)
	if errors.Is(err, host.ErrNotExist) {
		return invalidInput("the archive " + archive + " is not on the host")
	}
	if err != nil {
		return fmt.Errorf("open %s: %w", archive, err)
	}
	err = payload.Unpack(packed, func(sum string, _ int64, content io.Reader) error { return r.put(ctx, sum, content) })
	_ = packed.Close()
	if errors.Is(err, payload.ErrDamaged) {
		// Else what is sent again would be found to be there.
		err = errors.Join(err, a.host.Files.Remove(ctx, archive))
	}
	switch {
	case err != nil:
		return fmt.Errorf("unpack the agent from %s: %w", archive, err)
	case !r.done:
		return fmt.Errorf("%w: %s holds neither the agent %s nor a patch that makes it of this one", payload.ErrDamaged, archive, sum)
	}
	return nil
}

// receiver takes the agent out of an archive.
type receiver struct {
	*agent
	path, sum string // of the agent that is wanted
	done      bool
}

// put takes one file of the archive, or what a patch makes. What is not wanted is left.
func (r *receiver) put(ctx context.Context, sum string, content io.Reader) error {
	if r.done {
		return nil
	}
	if sum == r.sum {
		return r.keep(ctx, content)
	}
	whole, is, err := payload.AsPatch(content)
	if err != nil || !is {
		return err
	}
	header, err := payload.ReadPatchHeader(whole)
	if err != nil || header.ToSHA256 != r.sum {
		return err
	}
	own, err := r.agent.sum(ctx)
	if err != nil || header.FromSHA256 != own {
		return err
	}
	// It is read into memory: nothing but a file of the right size is.
	if info, err := r.host.Files.Stat(ctx, r.executable); err != nil || info.Size != header.FromSize {
		return err
	}
	from, err := r.store.readSized(ctx, r.executable, header.FromSize)
	if err != nil {
		return err
	}
	patched, err := header.Apply(whole, from)
	if errors.Is(err, payload.ErrNotPatchable) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(r.keep(ctx, patched), patched.Close())
}

// keep writes the program in one step: under its name there is never a part of it.
func (r *receiver) keep(ctx context.Context, content io.Reader) error {
	folder := strings.TrimSuffix(r.path, `\`+nodespec.AgentProgram)
	if err := (&executor{agent: r.agent}).ensureDirectory(ctx, folder); err != nil {
		return err
	}
	if err := r.host.Files.Write(ctx, r.path, content, host.WriteOptions{Access: host.AccessAdministrators}); err != nil {
		return fmt.Errorf("write %s: %w", r.path, err)
	}
	r.done = true
	return nil
}
