package agentapi_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/plan"
)

func TestLine(t *testing.T) {
	line := agentapi.Line{
		Type: agentapi.TypeFailure, Time: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		Failure: &agentapi.Failure{Reason: agentapi.ReasonStepFailed, Step: "WriteFile C:\\k\\f",
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
		got, ok := agentapi.Decode(data)
		line.WICD = agentapi.Magic
		if !ok || !reflect.DeepEqual(got, line) {
			t.Errorf("%+v", got)
		}
	})
	t.Run("with a carriage return at its end is still a line", func(t *testing.T) {
		if _, ok := agentapi.Decode(append(data, '\r')); !ok {
			t.Error("it is noise")
		}
	})
	t.Run("of a plan does not hold the operations, which may hold file contents", func(t *testing.T) {
		p := plan.Plan{Steps: []plan.Step{{Name: "n", Reason: "r",
			Operation: plan.SetEnvironment{Name: "P", Value: "canary"}}}}
		data, err := agentapi.Line{Type: agentapi.TypePlan, Plan: &p}.Encode()
		if err != nil || strings.Contains(string(data), "canary") {
			t.Errorf("%v %s", err, data)
		}
	})
}

func TestDecode_RejectsNoise(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":                    "",
		"a banner":                   "Microsoft Windows [Version 10.0.20348.681]",
		"JSON of another program":    `{"type":"result"}`,
		"a line of another protocol": `{"wicd":"v9","type":"result"}`,
		"a line that was cut off":    `{"wicd":"v1","type":"res`,
		"a number":                   "1",
	} {
		t.Run(name, func(t *testing.T) {
			if line, ok := agentapi.Decode([]byte(text)); ok || !reflect.DeepEqual(line, agentapi.Line{}) {
				t.Errorf("%+v", line)
			}
		})
	}
}

func TestFailure_IsError(t *testing.T) {
	var err error = &agentapi.Failure{Reason: agentapi.ReasonAgentBusy, Message: "busy"}
	var failure *agentapi.Failure
	if err.Error() != "busy" || !errors.As(err, &failure) {
		t.Error(err)
	}
	if err := (&agentapi.Failure{Step: "Reboot", Message: "refused"}); err.Error() != "Reboot: refused" {
		t.Error(err)
	}
}

func FuzzEncode(f *testing.F) {
	f.Add("plain")
	f.Add("ü🔒\x00\"\\\n\u2028")
	f.Fuzz(func(t *testing.T, text string) {
		line := agentapi.Line{Type: agentapi.TypeFailure, Failure: &agentapi.Failure{Message: text}}
		data, err := line.Encode()
		if err != nil {
			t.Fatal(err)
		}
		got, ok := agentapi.Decode(data)
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
func TestCheckComplete_RebootingFromRebootCommandsOnly(t *testing.T) {
	restarts := agentapi.Line{Type: agentapi.TypeRebooting}
	for name, allowed := range map[agentapi.Name]bool{
		agentapi.Facts: false, agentapi.Plan: false, agentapi.Verify: false, agentapi.Commit: false, agentapi.Apply: true, agentapi.Remove: true,
		agentapi.Rollback: true, agentapi.Reboot: true,
	} {
		if err := agentapi.CheckComplete(name, restarts); (err == nil) != allowed {
			t.Errorf("%s: %v", name, err)
		}
	}
}
