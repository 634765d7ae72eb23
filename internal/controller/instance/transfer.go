package instance

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/payload"
)

// send uploads spec and payload and returns the verb's arguments.
func (s *scope) send(ctx context.Context, spec nodespec.NodeSpec) ([]string, *obstacle) {
	encoded, err := spec.Encode()
	if err != nil {
		return nil, s.hostFailed(v1alpha1.ConditionInstalled, err)
	}
	sum := sha256.Sum256(encoded)
	specPath := nodespec.InboxSpec(hex.EncodeToString(sum[:]))
	if err := s.connection.Upload(ctx, specPath, int64(len(encoded)), bytes.NewReader(encoded), nil); err != nil {
		return nil, s.hostFailed(v1alpha1.ConditionInstalled, err)
	}
	arguments := []string{"--spec", specPath}
	lacking := missing(spec, s.session.facts.Payload)
	if len(lacking) == 0 {
		return arguments, nil
	}
	if !s.session.whole {
		lacking = patched(lacking, s.session.facts.Payload, s.Payload.Patches)
	}
	archive, err := s.Packer.Packed(ctx, lacking)
	if err != nil {
		return nil, payloadObstacle(err)
	}
	payloadPath := nodespec.InboxPayload(archive.SHA256)
	if err := s.sendArchive(ctx, "SendPayload", payloadPath, archive); err != nil {
		return nil, s.hostFailed(v1alpha1.ConditionInstalled, err)
	}
	return append(arguments, "--payload", payloadPath), nil
}

// patched puts patches in the place of files, where the host has what they are made of. A patch is in the payload only when it is smaller
// than the file.
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
func (s *scope) sendArchive(ctx context.Context, step, path string, archive *payload.Archive) error {
	if there, err := s.connection.Has(ctx, path, archive.Size); there || err != nil {
		return err
	}
	s.progress(ctx, step, 0, 0, "")
	return s.connection.Send(ctx, path, archive.Reader(), s.transferProgress(ctx, step))
}

func payloadObstacle(err error) *obstacle {
	return &obstacle{
		condition: v1alpha1.ConditionInstalled, reason: v1alpha1.ReasonPayloadUnavailable, err: err,
		message: "The operator cannot read its payload: " + err.Error(), next: "The operator's image is damaged or its disk is full.",
	}
}
