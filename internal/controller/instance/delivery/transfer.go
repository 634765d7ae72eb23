package delivery

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/obstacle"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/controller/metric"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/payload"
)

// send uploads spec and payload and returns the verb's arguments.
func (d *Delivery) send(ctx context.Context, s *scope.Scope, spec nodespec.NodeSpec) ([]string, *obstacle.Obstacle) {
	encoded, err := spec.Encode()
	if err != nil {
		return nil, d.Link.Failed(s, v1alpha1.ConditionInstalled, err)
	}
	sum := sha256.Sum256(encoded)
	specPath := nodespec.InboxSpec(hex.EncodeToString(sum[:]))
	if err := s.Connection.Upload(ctx, specPath, int64(len(encoded)), bytes.NewReader(encoded), nil); err != nil {
		return nil, d.Link.Failed(s, v1alpha1.ConditionInstalled, err)
	}
	arguments := []string{"--spec", specPath}
	whole := missing(spec, s.Session.Facts.Payload)
	if len(whole) == 0 {
		return arguments, nil
	}
	lacking := whole
	if !s.Session.Whole {
		lacking = patched(whole, s.Session.Facts.Payload, d.Payload.Patches)
	}
	archive, err := d.Payload.Archive(lacking)
	if err != nil {
		return nil, obstacle.Payload(err)
	}
	defer func() { _ = archive.Close() }() // it was only read
	payloadPath := nodespec.InboxPayload(archive.Name)
	if err := d.sendArchive(ctx, s, "SendPayload", payloadPath, archive); err != nil {
		return nil, d.Link.Failed(s, v1alpha1.ConditionInstalled, err)
	}
	countSent(whole, lacking)
	return append(arguments, "--payload", payloadPath), nil
}

// Lacking returns the digests of what is sent to a host with these payload files for the spec: of files, or of patches
// where the host has what they are made of.
func Lacking(spec nodespec.NodeSpec, present map[string]string, files *payload.Payload) []string {
	return patched(missing(spec, present), present, files.Patches)
}

// countSent counts the files that were sent as they are, and those in whose place a patch was.
func countSent(whole, sent []string) {
	for i := range whole {
		form := metric.WholeFile
		if sent[i] != whole[i] {
			form = metric.Patch
		}
		metric.FilesSent.Of(form).Inc()
	}
}

// patched puts patches in the place of files, where the host has what they are made of. A patch is in the payload only
// when it is smaller than the file.
func patched(lacking []string, present map[string]string, patches func(to string) []payload.Patch) []string {
	var chosen []string
	for _, sum := range lacking {
		list := patches(sum)
		i := slices.IndexFunc(list, func(p payload.Patch) bool { _, there := present[p.From]; return there })
		if i >= 0 {
			sum = list[i].SHA256
		}
		chosen = append(chosen, sum)
	}
	return chosen
}

// sendArchive sends an archive, or what an earlier attempt has not brought of it. The agent checks what is in it.
func (d *Delivery) sendArchive(ctx context.Context, s *scope.Scope, step, path string, archive *payload.Archive) error {
	if there, err := s.Connection.Has(ctx, path, archive.Size); there || err != nil {
		return err
	}
	end, err := d.Link.BeginTransfer(ctx, s, step)
	if err != nil {
		return err
	}
	defer end()
	d.Status.Progress(ctx, s, step, 0, 0, "")
	return s.Connection.Send(ctx, path, archive.Reader(), d.Status.Transfer(ctx, s, step))
}

// missing returns the payload files that the spec wants and the host lacks.
func missing(spec nodespec.NodeSpec, present map[string]string) []string {
	var result []string
	for _, release := range spec.Releases {
		for _, file := range release.Files {
			if _, ok := present[file.SHA256]; !ok {
				result = append(result, file.SHA256)
			}
		}
	}
	slices.Sort(result)
	return slices.Compact(result)
}
