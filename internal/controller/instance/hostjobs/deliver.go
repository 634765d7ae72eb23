package hostjobs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/controller/metrics"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/payload"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// stepSendPayload is the step that the status reports during a file transfer.
const stepSendPayload = "SendPayload"

// Planned is the plan of the agent for a NodeSpec that was sent.
type Planned struct {
	plan.Plan
	// Digest identifies the NodeSpec with its certificates.
	Digest string
	// sent are the arguments that name the sent files, for later commands over the same connection.
	sent []string
}

// Plan sends a NodeSpec with the files that the host lacks, and returns the plan of the agent.
func (h *Host) Plan(spec nodespec.NodeSpec, whole bool) (*Planned, *result.Result, error) {
	input := inputOf(spec)
	if h.Planned != nil && h.Planned.Digest == input {
		return h.Planned, nil, nil
	}
	present := h.Facts.Payload
	planned, pending, err := doOverConnection(h, KindPlan, input, workingResult(v1alpha1.ConditionUpToDate, stepSendPayload), nil,
		func(ctx context.Context, s *session) (*Planned, error) {
			sent, err := s.uploadSpec(ctx, spec, present, whole)
			if err != nil {
				return nil, err
			}
			line, err := s.Run(ctx, agentapi.Plan, sent...)
			if err != nil {
				return nil, err
			}
			return &Planned{Plan: *line.Result.Plan, Digest: input, sent: sent}, nil
		})
	if pending == nil && err == nil {
		h.Planned = planned
	}
	return planned, pending, err
}

// inputOf returns a digest of the NodeSpec and the certificates. The digest of the NodeSpec alone excludes
// certificates.
func inputOf(spec nodespec.NodeSpec) string {
	encoded, err := spec.Encode()
	if err != nil {
		return spec.Digest()
	}
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:])
}

// Applied is the result of an apply.
type Applied struct {
	// Digest identifies the NodeSpec that was applied.
	Digest string
	Line   agentapi.Line
}

// Apply has the agent configure the host with the NodeSpec. If fallback is set, the agent keeps the files needed
// to roll back to the NodeSpec with that digest. If before reports that the node is in service, the agent refuses
// and returns a plan that disrupts pods.
func (h *Host) Apply(spec nodespec.NodeSpec, fallback string, whole bool, before func() (inService bool, o *result.Result)) (Applied, *result.Result, error) {
	input := inputOf(spec)
	present := h.Facts.Payload
	var planned *Planned
	var inService bool
	with := func() (o *result.Result) {
		inService, o = before()
		planned = h.Planned // files sent by the plan are not sent again
		return o
	}
	return doOverConnection(h, KindApply, input+fallback, workingResult(v1alpha1.ConditionInstalled, stepSendPayload), with,
		func(ctx context.Context, s *session) (Applied, error) {
			var sent []string
			if planned != nil && planned.Digest == input {
				sent = planned.sent
			} else {
				var err error
				if sent, err = s.uploadSpec(ctx, spec, present, whole); err != nil {
					return Applied{}, err
				}
			}
			if fallback != "" {
				sent = append(slices.Clip(sent), "--rollback-to", "sha256:"+fallback)
			}
			if inService {
				sent = append(slices.Clip(sent), "--in-service")
			}
			line, err := s.runChange(ctx, s.agent, agentapi.Apply, sent...)
			return Applied{Digest: spec.Digest(), Line: line}, err
		})
}

// FormerApply returns the result of an apply that has just succeeded, if the applied NodeSpec has another digest.
// The desired state has then changed during the apply.
func (h *Host) FormerApply(digest string) (former Applied, found bool) {
	if h.ended == nil || h.ended.err != nil {
		return Applied{}, false
	}
	former, found = h.ended.answer.(Applied)
	if !found || former.Digest == digest {
		return Applied{}, false
	}
	h.used = true
	return former, true
}

// payloadError means that the operator cannot read its payload.
type payloadError struct{ error }

func (e payloadError) Unwrap() error { return e.error }

// uploadSpec uploads the NodeSpec and the payload, and returns the arguments of the agent command.
func (s *session) uploadSpec(ctx context.Context, spec nodespec.NodeSpec, present map[string]string, whole bool) ([]string, error) {
	encoded, err := spec.Encode()
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(encoded)
	specPath := nodespec.InboxSpec(hex.EncodeToString(sum[:]))
	if err := s.connection.Upload(ctx, specPath, int64(len(encoded)), bytes.NewReader(encoded), nil); err != nil {
		return nil, err
	}
	arguments := []string{"--spec", specPath}
	missing := MissingFiles(spec, present)
	if len(missing) == 0 {
		return arguments, nil
	}
	lacking := missing
	if !whole {
		lacking = PreferPatches(missing, present, s.payload.Patches)
	}
	archive, err := s.payload.Archive(lacking)
	if err != nil {
		return nil, payloadError{fmt.Errorf("create an archive of files: %w", err)}
	}
	defer func() { _ = archive.Close() }() // only read
	payloadPath := nodespec.InboxPayload(archive.Name)
	if err := s.sendArchive(ctx, payloadPath, archive); err != nil {
		return nil, err
	}
	countSent(missing, lacking)
	return append(arguments, "--payload", payloadPath), nil
}

// sendArchive sends an archive, or the part that an earlier attempt did not transfer. The agent verifies the
// content.
func (s *session) sendArchive(ctx context.Context, path string, archive *payload.Archive) error {
	if there, err := s.connection.Has(ctx, path, archive.Size); there || err != nil {
		return err
	}
	end, err := acquireSlot(ctx, s.runner.slots.payloads, s.runner.slots.slow, transferTimeShare, s.runner.clock, s.transferWaitReporter(stepSendPayload))
	if err != nil {
		return err
	}
	defer end()
	s.Report(Step{Name: stepSendPayload})
	return s.connection.Send(ctx, path, archive.Reader(), s.newTransferReporter(stepSendPayload))
}

// countSent counts the complete files and the patches that were sent.
func countSent(whole, sent []string) {
	for i := range whole {
		form := metrics.FullFile
		if sent[i] != whole[i] {
			form = metrics.Patch
		}
		metrics.FilesSent.Of(form).Inc()
	}
}
