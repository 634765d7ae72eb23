package instance

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"testing"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/agent"
	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host/fake"
)

// endless is a text of about 125 KB with multi-byte characters.
var endless = strings.Repeat("ü€", 25_000)

// rewriter forwards the output of an agent, and lets the test change each line.
type rewriter struct {
	to      io.Writer
	rewrite func(agentapi.Line) []agentapi.Line
	rest    []byte
}

func (w *rewriter) Write(data []byte) (int, error) {
	w.rest = append(w.rest, data...)
	for {
		text, rest, complete := bytes.Cut(w.rest, []byte("\n"))
		if !complete {
			return len(data), nil
		}
		w.rest = rest
		line, ok := agentapi.Decode(text)
		if !ok {
			continue
		}
		for _, changed := range w.rewrite(line) {
			encoded, err := changed.Encode()
			if err != nil {
				return 0, err
			}
			if _, err := w.to.Write(append(encoded, '\n')); err != nil {
				return 0, err
			}
		}
	}
}

// withHostileAgent replaces the host of the trial with a host that rewrites the output of its agent.
func (x *trial) withHostileAgent(rewrite func(agentapi.Line) []agentapi.Line) {
	x.t.Helper()
	x.withAgent(func(o *fake.Options) {
		honest := o.Programs
		o.Programs = func(content []byte) (fake.Program, error) {
			if string(content) != "wicd.exe" {
				return honest(content)
			}
			return func(ctx context.Context, p *fake.Process) int {
				return agent.Main(ctx, agent.Process{
					Host: p.Host, Args: p.Args, Executable: p.Path, Version: x.Version,
					Stdout: &rewriter{to: p.Stdout, rewrite: rewrite},
					Stderr: p.Stderr, Clock: x.clock, Rand: rand.Reader,
				})
			}, nil
		}
	})
}

// checkBounded checks the size and the encoding of a text reported by a host.
func checkBounded(t *testing.T, what, text string, most int) {
	t.Helper()
	if len(text) > most || !utf8.ValidString(text) || strings.ContainsRune(text, utf8.RuneError) {
		t.Errorf("%s has %d bytes, at most %d are kept; valid: %t", what, len(text), most, utf8.ValidString(text))
	}
}

func TestHostileHost_StatusAndMetricsAreBounded(t *testing.T) {
	x := newTrial(t, listedInstance())
	x.facts.Platform = "None"
	x.withHostileAgent(func(line agentapi.Line) []agentapi.Line {
		if line.Result == nil || line.Result.Facts == nil {
			return []agentapi.Line{line}
		}
		x.clock.Step(2 * progressInterval)
		system := &line.Result.Facts.System
		system.HostName, system.Product, system.Version, system.MachineID, system.BootID = endless, endless,
			endless, endless, endless
		for i := range 5000 {
			system.Addresses = append(system.Addresses, fmt.Sprintf("10.1.%d.%d", i/256, i%256))
		}
		system.Addresses = append([]string{endless}, system.Addresses...)
		lines := []agentapi.Line{{Type: agentapi.TypeStep, Step: &agentapi.Step{Name: endless, Detail: endless, Index: -1 << 40,
			Of: 1 << 40, State: agentapi.StepProgress}}}
		for i := range 20 {
			lines = append(lines, agentapi.Line{Type: agentapi.TypeStep, Step: &agentapi.Step{Name: fmt.Sprintf("%d%s", i, endless),
				State: agentapi.StepDone}})
		}
		return append(lines, line)
	})
	var steps []v1alpha1.StepStatus
	x.Client = interceptor.NewClient(x.Client.(client.WithWatch), interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch,
			options ...client.SubResourcePatchOption) error {
			if instance, ok := o.(*v1alpha1.WindowsInstance); ok && instance.Status.Step != nil {
				steps = append(steps, *instance.Status.Step)
				checkBounded(t, "nextAction", instance.Status.NextAction, 256+100)
			}
			return c.SubResource(sub).Patch(ctx, o, p, options...)
		},
	})
	instance, _ := x.reconcile()
	if len(steps) == 0 || steps[len(steps)-1].Name == "Inspect" {
		t.Fatalf("%d steps were shown", len(steps))
	}
	for _, step := range steps {
		checkBounded(t, "step.name", step.Name, 256)
		checkBounded(t, "step.detail", step.Detail, 1024)
		if step.Index < 0 || step.Total < step.Index {
			t.Errorf("step %d of %d", step.Index, step.Total)
		}
	}
	host := instance.Status.Host
	if host == nil {
		t.Fatalf("nothing is known of the host: %v", instance.Status.Conditions)
	}
	for what, text := range map[string]string{"name": host.Name, "product": host.Product, "machineID": host.MachineID,
		"bootID": host.BootID} {
		checkBounded(t, "status.host."+what, text, 256)
	}
	checkBounded(t, "status.host.build", host.Build, 300)
	if len(host.Addresses) != 64 || host.Addresses[0] != "10.0.128.7" {
		t.Errorf("%d addresses are kept, the first is %.50q", len(host.Addresses), host.Addresses[0])
	}
	for _, address := range host.Addresses {
		if _, err := netip.ParseAddr(address); err != nil {
			t.Errorf("%.50q is kept as an address", address)
		}
	}
	if encoded, err := json.Marshal(instance.Status); err != nil || len(encoded) > 32<<10 {
		t.Errorf("the status has %d bytes (%v)", len(encoded), err)
	}
	onlyKnownKinds(t)
}

// onlyKnownKinds checks all series of steps.
func onlyKnownKinds(t *testing.T) {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	otherCount := 0.0
	for _, family := range families {
		if family.GetName() != "wmco_steps_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			kind := metric.GetLabel()[0].GetValue()
			if kind == "Other" {
				otherCount = metric.GetCounter().GetValue()
			} else if strings.ContainsAny(kind, "ü€") {
				t.Errorf("there is a series of %.50q", kind)
			}
		}
	}
	if otherCount < 20 {
		t.Errorf("%v steps count as others", otherCount)
	}
}

func TestHostileHost_UnknownFailureIsAgentError(t *testing.T) {
	x := newTrial(t, listedInstance())
	x.withHostileAgent(func(line agentapi.Line) []agentapi.Line {
		if line.Result == nil {
			return []agentapi.Line{line}
		}
		return []agentapi.Line{{Type: agentapi.TypeFailure, Time: line.Time, Failure: &agentapi.Failure{Reason: agentapi.Reason(endless),
			Step: endless, Message: endless}}}
	})
	instance, _ := x.reconcile()
	condition := expectCondition(t, instance, v1alpha1.ConditionReachable, metav1.ConditionFalse, string(agentapi.ReasonAgentError))
	checkBounded(t, "the message", condition.Message, maxMessageLength)
	if instance.Status.Summary != string(agentapi.ReasonAgentError) {
		t.Errorf("summary %.50q", instance.Status.Summary)
	}
}
