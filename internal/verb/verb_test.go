package verb_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/internal/plan"
	"github.com/windows-machine-config/wmco/internal/verb"
)

func TestLine(t *testing.T) {
	line := verb.Line{
		Type: verb.TypeFailure, Time: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		Failure: &verb.Failure{Reason: verb.ReasonStepFailed, Step: "WriteFile C:\\k\\f",
			Message: "Zugriff verweigert: Prüfung 🔒"},
	}
	data, err := line.Encode()
	if err != nil {
		t.Fatal(err)
	}
	t.Run("is one line of ASCII, whatever it says", func(t *testing.T) {
		for _, b := range data {
			if b >= 0x80 || b == '\n' {
				t.Fatalf("byte %#x in %s", b, data)
			}
		}
	})
	t.Run("gives back what was written", func(t *testing.T) {
		got, ok := verb.Decode(data)
		line.WICD = verb.Magic
		if !ok || !reflect.DeepEqual(got, line) {
			t.Errorf("%+v", got)
		}
	})
	t.Run("with a carriage return at its end is still a line", func(t *testing.T) {
		if _, ok := verb.Decode(append(data, '\r')); !ok {
			t.Error("it is noise")
		}
	})
	t.Run("of a plan does not hold the operations, which may hold file contents", func(t *testing.T) {
		p := plan.Plan{Steps: []plan.Step{{Name: "n", Reason: "r",
			Operation: plan.SetEnvironment{Name: "P", Value: "canary"}}}}
		data, err := verb.Line{Type: verb.TypePlan, Plan: &p}.Encode()
		if err != nil || strings.Contains(string(data), "canary") {
			t.Errorf("%v %s", err, data)
		}
	})
}

func TestNoiseIsNoLine(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":                    "",
		"a banner":                   "Microsoft Windows [Version 10.0.20348.681]",
		"JSON of another program":    `{"type":"result"}`,
		"a line of another protocol": `{"wicd":"v9","type":"result"}`,
		"a line that was cut off":    `{"wicd":"v1","type":"res`,
		"a number":                   "1",
	} {
		t.Run(name, func(t *testing.T) {
			if line, ok := verb.Decode([]byte(text)); ok || !reflect.DeepEqual(line, verb.Line{}) {
				t.Errorf("%+v", line)
			}
		})
	}
}

func TestFailureIsAnError(t *testing.T) {
	var err error = &verb.Failure{Reason: verb.ReasonAgentBusy, Message: "busy"}
	var failure *verb.Failure
	if err.Error() != "busy" || !errors.As(err, &failure) {
		t.Error(err)
	}
	if err := (&verb.Failure{Step: "Reboot", Message: "refused"}); err.Error() != "Reboot: refused" {
		t.Error(err)
	}
}

func FuzzEncode(f *testing.F) {
	f.Add("plain")
	f.Add("ü🔒\x00\"\\\n\u2028")
	f.Fuzz(func(t *testing.T, text string) {
		line := verb.Line{Type: verb.TypeFailure, Failure: &verb.Failure{Message: text}}
		data, err := line.Encode()
		if err != nil {
			t.Fatal(err)
		}
		got, ok := verb.Decode(data)
		if !ok {
			t.Fatalf("noise: %s", data)
		}
		// JSON replaces invalid UTF-8; everything else is preserved.
		var want string
		plain, _ := json.Marshal(text)
		if err := json.Unmarshal(plain, &want); err != nil || got.Failure.Message != want {
			t.Fatalf("got %q, want %q", got.Failure.Message, want)
		}
	})
}

// The host is not trusted to send genuine output of the agent: an answer without a result must not count as a result.
func TestOnlyWhatMayRestartTheHostMayAnswerThatItRestarts(t *testing.T) {
	restarts := verb.Line{Type: verb.TypeRebooting}
	for name, allowed := range map[verb.Name]bool{
		verb.Facts: false, verb.Plan: false, verb.Verify: false, verb.Commit: false, verb.Apply: true, verb.Remove: true,
		verb.Rollback: true, verb.Reboot: true,
	} {
		if err := verb.CheckComplete(name, restarts); (err == nil) != allowed {
			t.Errorf("%s: %v", name, err)
		}
	}
}
