package agent_test

import (
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/agentapi"
)

func TestFlags_InvalidValuesRejected(t *testing.T) {
	r := newRig(t).start()
	for name, args := range map[string]string{
		"an apply without a spec":             "apply",
		"a plan of a payload without a spec":  `plan --payload C:\a.zst`,
		"a renewal of nothing":                "renew",
		"a certificate of nobody":             "renew --identity cloud-node-manager --identity-certificate AAAA",
		"an invalid certificate":              "renew --identity cloud-node-manager --identity-certificate cloud-node-manager:AAAA",
		"a certificate that is not base64url": "renew --identity cloud-node-manager --identity-certificate cloud-node-manager:A+/=",
	} {
		t.Run(name, func(t *testing.T) {
			line, _ := r.run(strings.Fields(args)...)
			if line.Type != agentapi.TypeFailure || line.Failure.Reason != agentapi.ReasonInvalidInput {
				t.Errorf("%s %v", line.Type, line.Failure)
			}
		})
	}
}
