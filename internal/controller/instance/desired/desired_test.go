package desired

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/payload"
)

// writeTestPayload returns a payload with the agent, containerd and its shim, and the absent components. If damaged,
// the file of the shim is missing.
func writeTestPayload(t *testing.T, damaged bool, absent ...payload.Absent) *payload.Payload {
	t.Helper()
	source := func(component string, files ...string) payload.Source {
		s := payload.Source{Component: payload.Component{Name: component, Version: "v1",
			Source: "example.org/" + component + "@v1"}}
		for _, name := range files {
			s.Files = append(s.Files, payload.File{Path: name})
			s.Content = append(s.Content, func() (io.ReadCloser, error) {
				return io.NopCloser(bytes.NewReader([]byte(name))), nil
			})
		}
		return s
	}
	dir := t.TempDir()
	p, err := payload.Write(dir, payload.Build{Version: "1.2.3", Absent: absent, Components: []payload.Source{
		source(payload.ComponentAgent, "wicd.exe"), source("containerd", "containerd.exe", "containerd-shim-runhcs-v1.exe"),
	}})
	if err != nil || !damaged {
		return requirePayload(t, p, err)
	}
	containerd, _ := p.Manifest().Component("containerd")
	if err := os.Remove(filepath.Join(dir, "store", containerd.Files[1].SHA256)); err != nil {
		t.Fatal(err)
	}
	p, err = payload.Load(dir)
	return requirePayload(t, p, err)
}

func requirePayload(t *testing.T, p *payload.Payload, err error) *payload.Payload {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestExplainMissing_NamesReasonForMissingProgram(t *testing.T) {
	lacks := func(programs ...string) error { return &nodespec.MissingProgramsError{Programs: programs} }
	hybridOverlay := payload.Absent{Name: "hybrid-overlay-node", Reason: "nobody brought it when the payload was built"}
	for name, c := range map[string]struct {
		payload *payload.Payload
		err     error
		want    []string
	}{
		"that was not put into the payload": {
			writeTestPayload(t, false, hybridOverlay), lacks("hybrid-overlay-node.exe"),
			[]string{"lacks hybrid-overlay-node.exe", "nobody brought it when the payload was built"},
		},
		"whose component is not whole": {
			writeTestPayload(t, true), lacks("containerd-shim-runhcs-v1.exe", "containerd.exe"), []string{"component containerd",
				"not in the store"},
		},
		"that the payload knows nothing of": {writeTestPayload(t, false), lacks("kubelet.exe"),
			[]string{"lacks kubelet.exe", "build the payload again"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := result.FromSpecError(explainMissing(c.err, c.payload, "1.36"))
			for _, want := range c.want {
				if strings.Count(o.Message, want) != 1 {
					t.Errorf("the status says %q, want once %q", o.Message, want)
				}
			}
			if o.Reason != v1alpha1.ReasonPayloadUnavailable || o.Condition != v1alpha1.ConditionInstalled {
				t.Errorf("%s is False for %s", o.Condition, o.Reason)
			}
		})
	}
	t.Run("but no other fault is", func(t *testing.T) {
		other := errors.New("the cluster's DNS is not known")
		if err := explainMissing(other, writeTestPayload(t, false, hybridOverlay), "1.36"); !errors.Is(err, other) ||
			err.Error() != other.Error() {
			t.Errorf("got %v", err)
		}
		if explainMissing(nil, writeTestPayload(t, false, hybridOverlay), "1.36") != nil {
			t.Error("a fault where none was")
		}
		if o := result.FromSpecError(other); o.Reason != v1alpha1.ReasonClusterConfigurationInvalid {
			t.Errorf("reason %s", o.Reason)
		}
	})
}
