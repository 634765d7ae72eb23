package nodespec

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAnswersAreAllThatChangesOnceASpecWasSent(t *testing.T) {
	before, known := testInputs(), testInputs()
	before.PodSubnet, known.PodSubnet = "", "10.132.7.0/24"
	spec, after := mustMake(t, before), mustMake(t, known)
	answers := Answers{Certificate: "a certificate", PodSubnet: "10.132.7.0/24"}
	got := spec.With(answers)
	if diff := cmp.Diff(answers, got.Answers()); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	if got.Digest() != after.Digest() {
		t.Errorf("the answered spec is not the one that is made when the answers are known:\n%s", cmp.Diff(after, got))
	}
	if got.With(spec.Answers()).Digest() != spec.Digest() {
		t.Error("an answer cannot be taken back")
	}
}
