package link

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/scope"
	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/remote"
	"github.com/windows-machine-config/wmco/internal/verb"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// The host is not trusted to send what the agent would: an answer without a result must not be taken for one.
func TestOnlyWhatMayRestartTheHostMayAnswerThatItRestarts(t *testing.T) {
	restarts := verb.Line{Type: verb.TypeRebooting}
	for name, allowed := range map[verb.Name]bool{
		verb.Facts: false, verb.Plan: false, verb.Verify: false, verb.Settle: false, verb.Apply: true, verb.Remove: true,
		verb.Rollback: true, verb.Reboot: true,
	} {
		if err := Complete(name, restarts); (err == nil) != allowed {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A transfer that was cut goes on only with the same archive: patches must not give way to whole files because of it.
func TestAFailureOnTheWayLeavesThePatches(t *testing.T) {
	l := Link{Hosts: remote.NewPool(&remote.Dialer{})}
	s := scope.New(&v1alpha1.WindowsInstance{}, &scope.Session{Agent: `C:\k\wicd\0123\wicd.exe`, Facts: &plan.Facts{}})
	l.Failed(s, v1alpha1.ConditionInstalled, errors.New("the connection was lost"))
	if s.Session.Whole || s.Session.Agent != "" || s.Session.Facts != nil {
		t.Errorf("%+v", s.Session)
	}
}

//
func TestTheHostIsAskedToTryTheAddressOfTheAPIServer(t *testing.T) {
	for url, want := range map[string][]string{
		"https://api-int.lab.example.com:6443": {"--api-server", "https://api-int.lab.example.com:6443"},
		"https://api-int.lab.example.com":      {"--api-server", "https://api-int.lab.example.com:443"},
		"https://10.0.0.2:6443/":               {"--api-server", "https://10.0.0.2:6443"},
		"https://[fd02::1]:6443":               nil, // no plain word for a shell
		"":                                     nil, // a removal does not read the cluster
	} {
		s := &scope.Scope{Instance: &v1alpha1.WindowsInstance{}}
		s.Cluster.APIServerInternalURL = url
		if got := (&Link{}).factsArguments(s); !slices.Equal(got, want) {
			t.Errorf("of %q: %q", url, got)
		}
	}
}

func TestUserDataPoll(t *testing.T) {
	for name, c := range map[string]struct {
		age    time.Duration
		jitter float64
		want   time.Duration
	}{
		"a host that was made just now":         {0, 0, 2 * time.Second},
		"a host that starts as a fast one does": {40 * time.Second, 0, 10 * time.Second},
		"a host that takes its time":            {10 * time.Minute, 0, 15 * time.Second},
		"one of many":                           {10 * time.Minute, 0.5, 13500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			if got := userDataPoll(c.age, c.jitter); got != c.want {
				t.Errorf("the next look is in %s, want %s", got, c.want)
			}
		})
	}
}

// The operator runs no program that a host names but an agent in the agents' own folder.
func TestPathOfAFormerAgent(t *testing.T) {
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
