package report

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

var compared = time.Date(2026, 3, 1, 12, 0, 0, 123, time.UTC)

func withSpec(o Outcome) Outcome {
	o.Spec = &nodespec.NodeSpec{Schema: nodespec.SchemaVersion}
	return o
}

func repairedSteps(names ...string) (o Outcome) {
	for _, name := range names {
		o.Repairs = append(o.Repairs, Repair{Name: name, Reason: name + " differed"})
	}
	return withSpec(o)
}

func failedStep(name, message string) Outcome {
	return withSpec(Outcome{Failure: &agentapi.Failure{Reason: agentapi.ReasonStepFailed, Step: name, Message: message}})
}

func TestFinding_ConditionMatchesHostState(t *testing.T) {
	inSync := finding{}.withOutcome(withSpec(Outcome{}), compared)
	drifted := inSync.withOutcome(failedStep("StartService a", "process 7 ended"), compared)
	for name, c := range map[string]struct {
		before  finding
		outcome Outcome
		// want contains the status, the reason and parts of the message; nil while the state of the host is
		// unknown.
		want []string
	}{
		"a host that is as it should be":            {finding{}, withSpec(Outcome{}), []string{"True", "InSync", "matches its NodeSpec sha256:", "agent 12.0.0"}},
		"a verb at work changes nothing":            {inSync, withSpec(Outcome{Skipped: true}), []string{"True", "InSync"}},
		"a verb at work before anything is known":   {finding{}, withSpec(Outcome{Skipped: true}), nil},
		"a host without a spec":                     {finding{}, Outcome{}, nil},
		"a node that waits for its network":         {finding{}, withSpec(Outcome{Waits: true}), nil},
		"a node whose network does not come":        {inSync, withSpec(Outcome{Waits: true, Left: "the network"}), []string{"False", "NeedsOperator", "left to the operator: the network"}},
		"repairs":                                   {inSync, repairedSteps("StartService a", "WriteFile b"), []string{"False", "Repaired", "Drift was repaired, most recently at 2026-03-01T12:00:00Z: StartService a (StartService a differed); WriteFile b (WriteFile b differed)."}},
		"the same repair twice":                     {inSync.withOutcome(repairedSteps("A"), compared), repairedSteps("A"), []string{"False", "Repaired", "repaired, most recently at 2026-03-01T12:00:00Z: A (A differed)."}},
		"a start after a boot is no repair":         {inSync, withSpec(Outcome{Repairs: []Repair{{Name: "StartService a", Start: true}}}), []string{"True", "InSync"}},
		"a repair under which a verb began":         {inSync, Outcome{Repairs: repairedSteps("StartService a").Repairs, Skipped: true}, []string{"False", "Repaired", "StartService a"}},
		"a step that fails":                         {inSync, failedStep("StartService a", "process 7 ended"), []string{"False", "Drifted", "not repaired: StartService a: process 7 ended"}},
		"the same trouble in other words":           {drifted, failedStep("StartService a", "process 8 ended"), []string{"False", "Drifted", "process 7 ended"}},
		"the end of trouble":                        {drifted, repairedSteps("StartService a"), []string{"False", "Repaired", "StartService a"}},
		"an end of trouble that is nobody's repair": {drifted, withSpec(Outcome{}), []string{"True", "InSync"}},
		"a comparison that could not be made":       {inSync, withSpec(Outcome{Failure: &agentapi.Failure{Message: "no answer"}}), []string{"False", "Drifted", "not repaired: no answer"}},
		"what failed, beside what is left to the operator and what was put back": {inSync.withOutcome(repairedSteps("C"), compared),
			withSpec(Outcome{Left: "a file", Failure: &agentapi.Failure{Step: "A", Message: "b"}}),
			[]string{"False", "NeedsOperator", "not repaired: A: b; left to the operator: a file. Drift was repaired, most recently at 2026-03-01T12:00:00Z: C (C differed)."}},
	} {
		t.Run(name, func(t *testing.T) {
			before := fmt.Sprintf("%+v", c.before)
			got := c.before.withOutcome(c.outcome, compared)
			if fmt.Sprintf("%+v", c.before) != before {
				t.Error("what was known before has changed")
			}
			if len(c.want) == 0 {
				if got.spec != "" {
					t.Errorf("the host is said to be compared: %+v", got)
				}
				return
			}
			condition := got.toCondition("12.0.0")
			if condition.Type != "WindowsConfiguration" || condition.Status != c.want[0] || condition.Reason != c.want[1] {
				t.Errorf("%+v", condition)
			}
			for _, part := range c.want[2:] {
				if !strings.Contains(condition.Message, part) {
					t.Errorf("the message is %q, without %q", condition.Message, part)
				}
			}
		})
	}
	t.Run("once a repair was told, the host matches its spec and the repair is its last", func(t *testing.T) {
		f := inSync.withOutcome(repairedSteps("A"), compared).withoutReported(1).withOutcome(withSpec(Outcome{}), compared.Add(time.Minute))
		want := "Last repair 2026-03-01T12:00:00Z: A (A differed)."
		if c := f.toCondition("12.0.0"); c.Status != "True" || !strings.HasSuffix(c.Message, want) {
			t.Errorf("%+v", c)
		}
	})
	t.Run("a repair that was made while others were told is not lost", func(t *testing.T) {
		f := inSync.withOutcome(repairedSteps("A"), compared).withOutcome(repairedSteps("B"), compared).withoutReported(1)
		if c := f.toCondition("12.0.0"); c.Reason != "Repaired" || c.Message != "Drift was repaired, most recently at 2026-03-01T12:00:00Z: B (B differed)." {
			t.Errorf("%+v", c)
		}
	})
	t.Run("the same repair at another time changes the message, also where that is cut", func(t *testing.T) {
		many := make([]string, maxConditionRepairs)
		for i := range many {
			many[i] = fmt.Sprint(i, strings.Repeat("a", maxConditionMessage/maxConditionRepairs))
		}
		first := inSync.withOutcome(repairedSteps(many...), compared)
		again := first.withoutReported(len(first.repairs)).withOutcome(repairedSteps(many...), compared.Add(time.Minute))
		if first.toCondition("12.0.0").hasSameState(again.toCondition("12.0.0")) {
			t.Error("nobody would know")
		}
	})
	t.Run("another agent and another spec change the message", func(t *testing.T) {
		other := withSpec(Outcome{})
		other.Spec.NodeName = "b"
		if inSync.toCondition("12.0.0").hasSameState(inSync.toCondition("12.0.1")) || inSync.toCondition("12.0.0").hasSameState(inSync.withOutcome(other, compared).toCondition("12.0.0")) {
			t.Error("nobody would know")
		}
	})
}

// The API server silently drops unknown fields.
func TestFinding_ConditionIsValidForAPI(t *testing.T) {
	endless := strings.Repeat("ä\x00\xff", 2000)
	f := finding{}
	for i := range 3 * maxConditionRepairs {
		f = f.withOutcome(repairedSteps(fmt.Sprint(i, endless)), compared)
	}
	if len(f.repairs) != maxConditionRepairs {
		t.Errorf("%d repairs are kept", len(f.repairs))
	}
	c := f.toCondition(endless)
	c.LastHeartbeatTime, c.LastTransitionTime = compared, compared
	data, err := json.Marshal(c)
	if err != nil || !utf8.Valid(data) {
		t.Fatalf("%v, valid: %t", err, utf8.Valid(data))
	}
	if n := utf8.RuneCountInString(c.Message); n != maxConditionMessage || strings.ContainsAny(c.Message, "\x00\r\n") || !strings.HasSuffix(c.Message, "…") {
		t.Errorf("the message has %d characters", n)
	}
	var read corev1.NodeCondition
	if err := yaml.UnmarshalStrict(data, &read); err != nil {
		t.Fatal(err)
	}
	if read.Type != nodespec.ConditionConfiguration || !slices.Contains([]corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse}, read.Status) ||
		read.Message != c.Message || !read.LastHeartbeatTime.Time.Equal(compared) || read.LastTransitionTime.IsZero() {
		t.Errorf("%+v", read)
	}
}
