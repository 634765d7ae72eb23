package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/windows-machine-config/wmco/internal/agent/hostutil"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// maxRunBytes is the maximum number of bytes read from the record of a command. The agent writes less.
const maxRunBytes = 128 << 10

// AddLines appends lines to the record of the last run of a command if more is true, and otherwise replaces the
// record.
func (r Records) AddLines(ctx context.Context, name agentapi.Name, lines []byte, more bool) error {
	path := nodespec.LastRunPath(string(name))
	options := host.WriteOptions{Access: host.AccessAdministrators, Append: more}
	// The last line of a canceled command reports the cancellation.
	if err := r.files.Write(context.WithoutCancel(ctx), path, bytes.NewReader(lines), options); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// Runs returns the recorded output of the last run of each command. Truncated lines are skipped.
func (r Records) Runs(ctx context.Context) ([]agentapi.Run, error) {
	var runs []agentapi.Run
	var failures []error
	for _, name := range agentapi.LockingCommands() {
		data, err := hostutil.ReadPrefix(ctx, r.files, nodespec.LastRunPath(string(name)), maxRunBytes)
		if err != nil {
			if !errors.Is(err, host.ErrNotExist) {
				failures = append(failures, err)
			}
			continue
		}
		run := agentapi.Run{Command: name}
		for each := range bytes.Lines(data) {
			if line, ok := agentapi.Decode(each); ok {
				run.Lines = append(run.Lines, line)
			}
		}
		runs = append(runs, run)
	}
	return runs, errors.Join(failures...)
}
