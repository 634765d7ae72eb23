package plan

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/windows-machine-config/wmco/internal/cmdutil"
	"github.com/windows-machine-config/wmco/internal/podexec"
)

// operator is a fake of the operator's command.
type operator struct {
	arguments []string
	answer    func(ctx context.Context, out io.Writer) (int, error)
}

func (o *operator) Run(ctx context.Context, arguments []string, streams podexec.Streams) (int, error) {
	o.arguments = arguments
	return o.answer(ctx, streams.Out)
}

// runKubectl runs a command line, and returns the output.
func (o *operator) runKubectl(t *testing.T, clock *clocktesting.FakeClock, line string) (string, error) {
	t.Helper()
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	words := strings.Fields(line)
	for _, command := range New(cmdutil.New(streams, clock), o) {
		if command.Name() != words[0] {
			continue
		}
		command.SilenceErrors, command.SilenceUsage = true, true
		command.SetArgs(words[1:])
		err := command.ExecuteContext(t.Context())
		return out.String(), err
	}
	t.Fatalf("there is no command %q", words[0])
	return "", nil
}

// newOperator returns an operator that prints a text and ends with a status.
func newOperator(text string, status int) *operator {
	return &operator{answer: func(_ context.Context, out io.Writer) (int, error) {
		_, err := io.WriteString(out, text)
		return status, err
	}}
}

func newClock() *clocktesting.FakeClock { return clocktesting.NewFakeClock(time.Unix(1<<30, 0)) }

func TestCommand_PassesArgumentsToOperator(t *testing.T) {
	for line, want := range map[string]string{
		"plan win-1 win-2":                       "plan win-1 win-2 --output=text",
		"plan --all -o json":                     "plan --all --output=json",
		"diagnose 10.0.0.7":                      "diagnose 10.0.0.7 --output=text",
		"diagnose win-1 --username=EXAMPLE\\ops": `diagnose win-1 --username=EXAMPLE\ops --output=text`,
	} {
		o := newOperator("said\n", 0)
		out, err := o.runKubectl(t, newClock(), line)
		if err != nil || out != "said\n" || !slices.Equal(o.arguments, strings.Fields(want)) {
			t.Errorf("%s: %v, printed %q, asked %q", line, err, out, o.arguments)
		}
	}
}

func TestCommand_InvalidArgumentsNotSent(t *testing.T) {
	for line, message := range map[string]string{
		"plan":                  "specify the names of hosts, or --all",
		"plan win-1 --all":      "either names or --all",
		"plan win-1 -o yaml":    "use text or json",
		"diagnose":              "accepts 1 arg",
		"diagnose win-1 -o xml": "use text or json",
	} {
		o := newOperator("", 0)
		if _, err := o.runKubectl(t, newClock(), line); err == nil || !strings.Contains(err.Error(), message) || o.arguments != nil {
			t.Errorf("%s: %v, asked %q", line, err, o.arguments)
		}
	}
}

func TestCommand_ReturnsOperatorExitStatus(t *testing.T) {
	for status, want := range map[int]int{0: 0, 1: 1, podexec.Found: 2} {
		_, err := newOperator("", status).runKubectl(t, newClock(), "plan win-1")
		got := podexec.ExitStatus(0)
		if errors.As(err, &got); int(got) != want || (err == nil) != (want == 0) {
			t.Errorf("status %d: %v", status, err)
		}
	}
}

func TestCommand_TimeoutEndsWaitForOperator(t *testing.T) {
	clock := newClock()
	o := &operator{answer: func(ctx context.Context, _ io.Writer) (int, error) {
		clock.Step(time.Minute)
		<-ctx.Done()
		return 0, fmt.Errorf("stopped: %w", context.Cause(ctx))
	}}
	_, err := o.runKubectl(t, clock, "plan win-1 --timeout=1m")
	if err == nil || !strings.Contains(err.Error(), "the operator has not responded within 1m0s") {
		t.Errorf("the error is %v", err)
	}
}
