package hostjobs

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// The only programs that the operator runs at the request of a host are agents in the agent directory.
func TestAgentPath_AcceptsDigestOnly(t *testing.T) {
	own := `C:\k\wicd\000000000000\wicd.exe`
	sum := strings.Repeat("0123456789abcdef", 4)
	for name, c := range map[string]struct{ named, want string }{
		"a digest is that agent's":          {sum, `C:\k\wicd\0123456789ab\wicd.exe`},
		"none is the operator's own":        {"", own},
		"a path is no digest":               {`..\..\Users\evil.exe`, own},
		"neither is one with a path in it":  {`..\` + sum[3:], own},
		"neither is one that goes on":       {sum + "\n", own},
		"neither is a longer or short word": {sum[:12], own},
	} {
		if got := agentPath(c.named, own); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestFormatTransfer(t *testing.T) {
	for name, c := range map[string]struct {
		done, total, sent int64
		in                time.Duration
		want              string
	}{
		"at its beginning":             {500_000, 62_000_000, 500_000, time.Millisecond, "0.5 of 62.0 MB"},
		"under way":                    {20_000_000, 62_000_000, 20_000_000, 4 * time.Second, "20.0 of 62.0 MB, 5.0 MB/s"},
		"going on where it was cut":    {42_000_000, 62_000_000, 2_000_000, 4 * time.Second, "42.0 of 62.0 MB, 0.5 MB/s"},
		"to a host that takes nothing": {1_000_000, 62_000_000, 0, time.Minute, "1.0 of 62.0 MB, 0.0 MB/s"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := formatTransfer(c.done, c.total, c.sent, c.in); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A transfer resumes only with an identical archive, so the choice of patches must not depend on the
// interruption.
func TestHandleFailure_ClearsFactsOfHost(t *testing.T) {
	h := &Host{Known: Known{Agent: `C:\k\wicd\0123\wicd.exe`, Facts: &plan.Facts{}}}
	h.HandleFailure(v1alpha1.ConditionInstalled, errors.New("the connection was lost"))
	if h.Agent != "" || h.Facts != nil {
		t.Errorf("%+v", h.Known)
	}
}
