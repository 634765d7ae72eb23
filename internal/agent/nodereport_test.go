package agent

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"sigs.k8s.io/yaml"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/verb"
)

var reported = time.Date(2026, 3, 1, 12, 0, 0, 123, time.UTC)

func told(o outcome) outcome {
	o.spec = &nodespec.NodeSpec{Schema: nodespec.SchemaVersion}
	return o
}

func repaired(names ...string) (o outcome) {
	for _, name := range names {
		o.repairs = append(o.repairs, repair{name: name, reason: name + " differed"})
	}
	return told(o)
}

func failedStep(name, message string) outcome {
	return told(outcome{failure: &verb.Failure{Reason: verb.ReasonStepFailed, Step: name, Message: message}})
}

func TestReportOfOutcomes(t *testing.T) {
	inSync := finding{}.next(told(outcome{}), "12.0.0", reported)
	drifted := inSync.next(failedStep("StartService a", "process 7 ended"), "12.0.0", reported)
	for name, c := range map[string]struct {
		before  finding
		outcome outcome
		after   time.Duration
		state   string
		message string
		drift   []string
		same    bool
	}{
		"a host that is as it should be":                {finding{}, told(outcome{}), 0, "InSync", "", nil, false},
		"the same again":                                {inSync, told(outcome{}), time.Hour, "InSync", "", nil, true},
		"a verb at work":                                {inSync, told(outcome{skipped: true}), 0, "InSync", "", nil, true},
		"a verb at work before anything is known":       {finding{}, told(outcome{skipped: true}), 0, "", "", nil, true},
		"a host without a spec":                         {finding{}, outcome{}, 0, "", "", nil, true},
		"a node that waits for its network":             {finding{}, told(outcome{waits: true}), 0, "", "", nil, true},
		"a node whose network does not come":            {inSync, told(outcome{waits: true, left: "the network"}), 0, "Drifted", "left to the operator: the network", nil, false},
		"repairs, the last first":                       {inSync, repaired("StartService a", "WriteFile b"), 0, "InSync", "", []string{"WriteFile b repaired", "StartService a repaired"}, false},
		"a start after a boot":                          {inSync, told(outcome{repairs: []repair{{name: "StartService a", start: true}}}), 0, "InSync", "", nil, true},
		"a repair under which a verb began":             {inSync, outcome{repairs: repaired("StartService a").repairs, skipped: true}, 0, "InSync", "", []string{"StartService a repaired"}, false},
		"a step that fails":                             {inSync, failedStep("StartService a", "process 7 ended"), 0, "Drifted", "not repaired: StartService a: process 7 ended", []string{"StartService a"}, false},
		"the same trouble in other words":               {drifted, failedStep("StartService a", "process 8 ended"), 2 * EventRepeat, "Drifted", "not repaired: StartService a: process 7 ended", []string{"StartService a"}, true},
		"the end of trouble":                            {drifted, repaired("StartService a"), time.Minute, "InSync", "", []string{"StartService a repaired"}, false},
		"an end of trouble that is nobody's repair":     {drifted, told(outcome{}), time.Minute, "InSync", "", []string{"StartService a"}, false},
		"a comparison that could not be made":           {inSync, told(outcome{failure: &verb.Failure{Message: "no answer"}}), 0, "Drifted", "not repaired: no answer", nil, false},
		"what is left to the operator beside a failure": {inSync, told(outcome{left: "a file", failure: &verb.Failure{Step: "A", Message: "b"}}), 0, "Drifted", "not repaired: A: b; left to the operator: a file", []string{"A"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			before := fmt.Sprintf("%+v", c.before)
			got := c.before.next(c.outcome, "12.0.0", reported.Add(c.after))
			var drift []string
			for _, d := range got.Report.Drift {
				text := d.Step
				if d.Repaired {
					text += " repaired"
				}
				drift = append(drift, text)
			}
			if got.Report.State != c.state || got.Report.Message != c.message || !slices.Equal(drift, c.drift) {
				t.Errorf("%+v", got.Report)
			}
			if same := got.Report.equals(c.before.Report); same != c.same {
				t.Errorf("it is the same as before: %t", same)
			}
			if fmt.Sprintf("%+v", c.before) != before {
				t.Error("what was known before has changed")
			}
		})
	}
	t.Run("the same repair is news once an hour", func(t *testing.T) {
		first := inSync.next(repaired("StartService a"), "12.0.0", reported)
		if again := first.next(repaired("StartService a"), "12.0.0", reported.Add(EventRepeat-time.Minute)); !again.Report.equals(first.Report) {
			t.Error("it is told within the hour")
		}
		later := first.next(repaired("StartService b"), "12.0.0", reported).next(repaired("StartService a"), "12.0.0", reported.Add(EventRepeat))
		if drift := later.Report.Drift; len(drift) != 2 || drift[0].Step != "StartService a" || !drift[0].Time.Equal(reported.Add(EventRepeat).Truncate(time.Second)) {
			t.Errorf("%+v", drift)
		}
	})
	t.Run("a repair is news where the clock was ahead at the one before", func(t *testing.T) {
		first := inSync.next(repaired("StartService a"), "12.0.0", reported.AddDate(0, 1, 0))
		again := first.next(repaired("StartService a"), "12.0.0", reported)
		if drift := again.Report.Drift; len(drift) != 1 || !drift[0].Time.Equal(reported.Truncate(time.Second)) {
			t.Errorf("%+v", drift)
		}
	})
	t.Run("trouble that comes again is news", func(t *testing.T) {
		over := drifted.next(told(outcome{}), "12.0.0", reported)
		again := over.next(failedStep("StartService a", "process 9 ended"), "12.0.0", reported.Add(time.Minute))
		if again.Report.equals(over.Report) || !strings.Contains(again.Report.Message, "process 9") || !again.Report.Drift[0].Time.After(over.Report.Drift[0].Time) {
			t.Errorf("%+v", again.Report)
		}
	})
	t.Run("another agent and another spec are news", func(t *testing.T) {
		other := told(outcome{})
		other.spec.NodeName = "b"
		if inSync.next(told(outcome{}), "12.0.1", reported).Report.equals(inSync.Report) || inSync.next(other, "12.0.0", reported).Report.equals(inSync.Report) {
			t.Error("nobody would know")
		}
	})
}

// The API server would refuse a report with a field that it does not know or a text that is too long, and nobody would see why a host is silent.
func TestReportIsWhatTheAPITakes(t *testing.T) {
	endless := strings.Repeat("ä\x00\xff", 2000)
	f := finding{}
	for i := range 3 * maxReportDrift {
		f = f.next(failedStep(fmt.Sprint(i, endless), endless), endless, reported)
	}
	f.Report.Time = reported
	data, err := json.Marshal(f.Report)
	if err != nil || !utf8.Valid(data) {
		t.Fatalf("%v, valid: %t", err, utf8.Valid(data))
	}
	var fields map[string]any
	if err := json.Unmarshal(data, &fields); err != nil {
		t.Fatal(err)
	}
	wanted := reportSchema(t)
	checkFields(t, "status", fields, wanted)

	t.Run("the list is full, with the newest first", func(t *testing.T) {
		drift := f.Report.Drift
		if len(drift) != maxReportDrift || !strings.HasPrefix(drift[0].Step, fmt.Sprint(3*maxReportDrift-1)) {
			t.Errorf("%d, the first is %.10s", len(drift), drift[0].Step)
		}
	})
	t.Run("texts are as long as the API lets them be", func(t *testing.T) {
		for name, c := range map[string]struct {
			text string
			most int
		}{
			"message": {f.Report.Message, wanted.Properties["message"].MaxLength}, "version": {f.Report.AgentVersion, wanted.Properties["agentVersion"].MaxLength},
			"step":   {f.Report.Drift[0].Step, wanted.Properties["drift"].Items.Properties["step"].MaxLength},
			"reason": {f.Report.Drift[0].Reason, wanted.Properties["drift"].Items.Properties["reason"].MaxLength},
		} {
			if n := utf8.RuneCountInString(c.text); n != c.most || strings.ContainsAny(c.text, "\x00\r\n") || !strings.HasSuffix(c.text, "…") {
				t.Errorf("%s has %d characters of %d", name, n, c.most)
			}
		}
	})
	t.Run("it reads back as the API's own type", func(t *testing.T) {
		var status v1alpha1.WindowsNodeReportStatus
		if err := yaml.UnmarshalStrict(data, &status); err != nil {
			t.Fatal(err)
		}
		if status.State != v1alpha1.NodeReportDrifted || stateInSync != string(v1alpha1.NodeReportInSync) || len(status.Drift) != maxReportDrift ||
			!status.Time.Time.Equal(reported.Truncate(time.Second)) && !status.Time.Time.Equal(reported) {
			t.Errorf("%+v", status)
		}
	})
	t.Run("what a report no longer says is said to be gone, which a merge patch needs", func(t *testing.T) {
		data, err := json.Marshal(finding{}.next(told(outcome{}), "", reported).Report)
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]any
		if err := json.Unmarshal(data, &fields); err != nil {
			t.Fatal(err)
		}
		for name := range wanted.Properties {
			if _, said := fields[name]; !said {
				t.Errorf("nothing is said of %s", name)
			}
		}
	})
}

// schema is what is compared of that of an object.
type schema struct {
	Type       string            `json:"type"`
	Format     string            `json:"format"`
	Enum       []string          `json:"enum"`
	MaxLength  int               `json:"maxLength"`
	MaxItems   int               `json:"maxItems"`
	Items      *schema           `json:"items"`
	Properties map[string]schema `json:"properties"`
}

// reportSchema is that of the status in the definition that the API server gets.
func reportSchema(t *testing.T) schema {
	t.Helper()
	data, err := os.ReadFile("../../deploy/crd/windowsmachineconfig.openshift.io_windowsnodereports.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var definition struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema schema `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(data, &definition); err != nil {
		t.Fatal(err)
	}
	return definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
}

// checkFields compares an object with its schema: no field more, none less, and nothing out of bounds.
func checkFields(t *testing.T, where string, fields map[string]any, wanted schema) {
	t.Helper()
	if len(wanted.Properties) != len(fields) {
		t.Errorf("%s has %d fields, the API %d", where, len(fields), len(wanted.Properties))
	}
	for name, value := range fields {
		property, known := wanted.Properties[name]
		if !known {
			t.Errorf("the API does not know %s.%s", where, name)
			continue
		}
		switch value := value.(type) {
		case string:
			if n := utf8.RuneCountInString(value); property.MaxLength > 0 && n > property.MaxLength {
				t.Errorf("%s.%s has %d characters, at most %d are taken", where, name, n, property.MaxLength)
			}
			if property.Format == "date-time" {
				if _, err := time.Parse(time.RFC3339, value); err != nil {
					t.Errorf("%s.%s: %v", where, name, err)
				}
			}
			if len(property.Enum) > 0 && !slices.Contains(property.Enum, value) {
				t.Errorf("%s.%s is %q", where, name, value)
			}
		case []any:
			if len(value) > property.MaxItems {
				t.Errorf("%s.%s has %d entries, at most %d are taken", where, name, len(value), property.MaxItems)
			}
			for _, item := range value {
				if object, is := item.(map[string]any); is {
					checkFields(t, where+"."+name, object, *property.Items)
				}
			}
		case bool:
			if property.Type != "boolean" {
				t.Errorf("%s.%s is %t", where, name, value)
			}
		default:
			t.Errorf("%s.%s is a %T", where, name, value)
		}
	}
}
