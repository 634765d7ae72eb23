package instance

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"maps"
	"slices"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/payload"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// continuation are the arguments of a verb about a spec that the host has, but for answers to what it needed; nil when the spec must be sent.
func (s *scope) continuation(spec nodespec.NodeSpec) []string {
	known := s.session.known
	if known == nil || known.Version != spec.Version || known.With(spec.Answers()).Digest() != spec.Digest() ||
		len(missing(spec, s.session.facts.Payload)) > 0 {
		return nil
	}
	return answerArguments(spec)
}

// isSpecUnknown tells whether the agent has not the spec that it was to go on with: somebody has changed it on the host.
func isSpecUnknown(err error) bool {
	var failure *verb.Failure
	return errors.As(err, &failure) && failure.Reason == verb.ReasonSpecUnknown
}

// maxCertificateLength is how long certificates may be together to travel in a command line, in characters of base64. A cluster's own signer
// makes about 1100 for each.
const maxCertificateLength = 3400

// answerArguments name a spec that the host has and give the answers to its needs; nil when they are too long for a command line.
func answerArguments(spec nodespec.NodeSpec) []string {
	arguments := []string{"--digest", "sha256:" + spec.Digest()}
	certificates := certificateArguments(spec.Answers())
	if length(certificates) > maxCertificateLength {
		return nil
	}
	arguments = append(arguments, certificates...)
	if spec.Network.PodSubnet != "" {
		arguments = append(arguments, "--pod-subnet", spec.Network.PodSubnet)
	}
	return arguments
}

// certificateArguments are the certificates among the answers.
func certificateArguments(answers nodespec.Answers) []string {
	var arguments []string
	if answers.Certificate != "" {
		arguments = append(arguments, "--certificate", certificateWord(answers.Certificate))
	}
	for _, name := range slices.Sorted(maps.Keys(answers.Certificates)) {
		arguments = append(arguments, "--identity-certificate", name+":"+certificateWord(answers.Certificates[name]))
	}
	return arguments
}

// certificateWord is a certificate as a word in which no shell finds anything to change.
func certificateWord(text string) string {
	return base64.RawURLEncoding.EncodeToString(certificateChain(text))
}

func length(words []string) int {
	total := 0
	for _, word := range words {
		total += len(word) + 1
	}
	return total
}

// certificateChain is the DER form of the certificates in a PEM text, one after the other.
func certificateChain(text string) []byte {
	var chain []byte
	for block, rest := pem.Decode([]byte(text)); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			chain = append(chain, block.Bytes...)
		}
	}
	return chain
}

// send uploads spec and payload and returns the verb's arguments.
func (s *scope) send(ctx context.Context, spec nodespec.NodeSpec) ([]string, *obstacle) {
	encoded, err := spec.Encode()
	if err != nil {
		return nil, s.hostObstacle(v1alpha1.ConditionInstalled, err)
	}
	sum := sha256.Sum256(encoded)
	specPath := nodespec.InboxSpec(hex.EncodeToString(sum[:]))
	if err := s.connection.Upload(ctx, specPath, int64(len(encoded)), bytes.NewReader(encoded), nil); err != nil {
		return nil, s.hostObstacle(v1alpha1.ConditionInstalled, err)
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
		return nil, s.hostObstacle(v1alpha1.ConditionInstalled, err)
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
		condition: v1alpha1.ConditionInstalled, reason: v1alpha1.ReasonPayloadMissing, err: err,
		message: "The operator cannot read its payload: " + err.Error(), next: "The operator's image is damaged or its disk is full.",
	}
}
