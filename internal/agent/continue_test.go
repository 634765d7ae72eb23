package agent_test

import (
	"encoding/base64"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/verb"
)

// answers are the flags that go on with the spec on the host.
func answers(spec nodespec.NodeSpec) []string {
	args := []string{"apply", "--digest", "sha256:" + spec.Digest()}
	if block, _ := pem.Decode([]byte(spec.Identity.Certificate)); block != nil {
		args = append(args, "--certificate", base64.RawURLEncoding.EncodeToString(block.Bytes))
	}
	if spec.Network.PodSubnet != "" {
		args = append(args, "--pod-subnet", spec.Network.PodSubnet)
	}
	return args
}

func TestAConfigurationGoesOnWithTheSpecOnTheHost(t *testing.T) {
	r := newRig(t).start()
	spec := newSpec(nil)
	boot := r.BootID()
	if line, _ := r.apply(spec); line.Type != verb.TypeRebooting {
		t.Fatalf("%s %v", line.Type, line.Failure)
	}
	r.awaitBoot(boot)
	r.must(r.Drive().RemoveAll(nodespec.InboxRoot)) // what was sent is not needed again
	for range 3 {
		line, _ := r.run(answers(spec)...)
		if line.Type != verb.TypeResult {
			t.Fatalf("%s %v", line.Type, line.Failure)
		}
		if !r.satisfy(&spec, *line.Result) {
			break
		}
	}
	if p := r.plan(r.full()); len(p.Steps)+len(p.Needs) != 0 {
		t.Errorf("needs %v, steps\n%s", p.Needs, names(p))
	}
}

func TestASpecThatTheHostHasNotIsNotGoneOnWith(t *testing.T) {
	r := newRig(t).start()
	refused := func(what string, args []string) {
		t.Helper()
		before := r.Snapshot()
		line, steps := r.run(args...)
		if line.Type != verb.TypeFailure || line.Failure.Reason != verb.ReasonSpecUnknown || len(steps) > 0 {
			t.Errorf("%s: %s %v, steps %v", what, line.Type, line.Failure, steps)
		}
		if diff := cmp.Diff(before, r.Snapshot()); diff != "" {
			t.Errorf("%s: the host was changed:\n%s", what, diff)
		}
	}
	r.push()
	refused("no spec on the host", answers(newSpec(nil)))
	r.configure()
	r.awaitSettled()
	other := r.full()
	other.Environment = map[string]string{"HTTPS_PROXY": "http://other.example:1"}
	refused("another spec on the host", answers(other))
	wrong := answers(r.full())
	wrong[len(wrong)-1] = "10.132.9.0/24"
	refused("another answer", wrong)
	r.must(r.Drive().WriteFile(nodespec.SpecPath, []byte("{")))
	refused("a spec on the host that nobody can read", answers(r.full()))
}

func TestFlagsOfASpec(t *testing.T) {
	r := newRig(t).start()
	for name, args := range map[string]string{
		"neither a file nor a digest":         "apply",
		"both":                                `apply --spec C:\a.json --digest sha256:00`,
		"a payload without its spec":          `apply --digest sha256:00 --payload C:\a.zst`,
		"an answer to a spec that is sent":    `apply --spec C:\a.json --pod-subnet 10.0.0.0/24`,
		"a certificate that is none":          "apply --digest sha256:00 --certificate AAAA",
		"a certificate that is not base64url": "apply --digest sha256:00 --certificate A+/=",
	} {
		t.Run(name, func(t *testing.T) {
			line, _ := r.run(strings.Fields(args)...)
			if line.Type != verb.TypeFailure || line.Failure.Reason != verb.ReasonInvalidInput {
				t.Errorf("%s %v", line.Type, line.Failure)
			}
		})
	}
}
