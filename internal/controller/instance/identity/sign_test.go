package identity

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// The name of a MachineSet may have 63 characters, and the names of its Machines have six more.
func TestLabelOf_ValidForLongNames(t *testing.T) {
	long := strings.Repeat("x", 63)
	for name, c := range map[string]struct{ instance, want string }{
		"a name that fits stays as it is":               {"winworker-x2k4f", "winworker-x2k4f"},
		"so does the longest":                           {long, long},
		"a longer one is cut":                           {long + "-x2k4f", ""},
		"so is one with a dot at the end of what stays": {strings.Repeat("x", 39) + "." + long, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := labelOf(c.instance)
			if problems := validation.IsValidLabelValue(got); len(problems) > 0 || c.want != "" && got != c.want {
				t.Errorf("it is %q: %q", got, problems)
			}
		})
	}
	if labelOf(long+"-x2k4f") == labelOf(long+"-7vq9z") {
		t.Error("two Machines of one MachineSet have one label")
	}
}

func TestRefuseRequest_MissingRequestIsNotSuspicious(t *testing.T) {
	identity := nodespec.Identity{CommonName: "system:node:win-1", Organization: "system:nodes"}
	for name, c := range map[string]struct {
		request   string
		suspicion bool
	}{
		"a host that sent no request":                        {"", false},
		"a host that sent something that is no such request": {"no request", true},
	} {
		t.Run(name, func(t *testing.T) {
			o := refuseRequest(identity, &plan.Facts{Identity: plan.IdentityFacts{Request: c.request}})
			if o == nil || strings.Contains(o.NextAction, "who has access to the host") != c.suspicion || strings.Contains(o.NextAction, "identity that is not its own") {
				t.Errorf("%+v", o)
			}
		})
	}
}

func TestPollUntil_UsesClockAndEndsAtTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ticking, polls, ended := clocktesting.NewFakeClock(time.Now()), 0, make(chan error, 1)
		signer := Signer{Clock: ticking}
		begin := func(enough int) {
			polls = 0
			go func() {
				ended <- signer.pollUntil(t.Context(), signPollInterval, signTimeout, func(context.Context) (bool, error) {
					polls++
					return polls == enough, nil
				})
			}()
			synctest.Wait()
		}
		begin(2)
		if polls != 1 {
			t.Fatalf("at once it looks %d times", polls)
		}
		ticking.Step(signPollInterval)
		if err := <-ended; err != nil || polls != 2 {
			t.Errorf("after %d looks: %v", polls, err)
		}
		start := time.Now()
		begin(-1)
		if err := <-ended; !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != signTimeout {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
	})
}
