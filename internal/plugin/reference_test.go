package plugin

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
)

var update = flag.Bool("update", false, "write the reference of the commands")

const (
	document = "../../docs/cli.md"
	begin    = "<!-- begin of what the commands say of themselves -->\n"
	end      = "<!-- end of what the commands say of themselves -->\n"
)

func commands() *cobra.Command {
	return New(genericiooptions.NewTestIOStreamsDiscard(), clock.RealClock{}, "test")
}

// reference is what each command says of itself.
func reference(root *cobra.Command) string {
	var text strings.Builder
	for _, c := range root.Commands() {
		if c.Name() == "help" || c.Name() == "completion" {
			continue
		}
		fmt.Fprintf(&text, "\n### %s\n\n%s.\n", c.Name(), c.Short)
		if c.Long != "" {
			fmt.Fprintf(&text, "\n%s\n", c.Long)
		}
		fmt.Fprintf(&text, "\n    kubectl windows %s\n", c.Use)
		if c.Example != "" {
			fmt.Fprintf(&text, "\n```\n%s\n```\n", c.Example)
		}
		if c.LocalNonPersistentFlags().HasAvailableFlags() {
			fmt.Fprintf(&text, "\n```\n%s```\n", c.LocalNonPersistentFlags().FlagUsages())
		}
	}
	return text.String() + "\n"
}

func TestTheReferenceIsWhatTheCommandsSay(t *testing.T) {
	old, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, opened := strings.Cut(string(old), begin)
	_, after, closed := strings.Cut(rest, end)
	if !opened || !closed {
		t.Fatalf("%s lacks the lines between which the reference stands", document)
	}
	fresh := before + begin + reference(commands()) + end + after
	if *update {
		if err := os.WriteFile(document, []byte(fresh), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(old), fresh); diff != "" {
		t.Errorf("%s (-is +should); go test ./internal/plugin -update writes it:\n%s", document, diff)
	}
}

func TestEachCommandHasAnExampleThatIsOne(t *testing.T) {
	for _, c := range commands().Commands() {
		switch c.Name() {
		case "help", "completion", "version":
			continue
		}
		if !strings.Contains(c.Example, "kubectl windows "+c.Name()) {
			t.Errorf("%s has no example", c.Name())
		}
		for _, line := range strings.Split(c.Example, "\n") {
			arguments, is := strings.CutPrefix(strings.TrimSpace(line), "kubectl windows ")
			if !is {
				continue
			}
			found, rest, err := commands().Find(strings.Fields(arguments))
			if err != nil {
				t.Errorf("%s: %v", line, err)
				continue
			}
			if err := found.ParseFlags(rest); err != nil {
				t.Errorf("%s: %v", line, err)
			}
			if err := found.ValidateArgs(found.Flags().Args()); err != nil {
				t.Errorf("%s: %v", line, err)
			}
		}
	}
}

func TestTheCommandIsCalledAsItsProgram(t *testing.T) {
	for program, want := range map[string]string{
		"/usr/bin/kubectl-windows": "kubectl windows", "oc-windows": "oc windows", "kubectl-windows.exe": "kubectl windows",
		"/tmp/plugin.test": "kubectl windows",
	} {
		if got := invocation(program); got != want {
			t.Errorf("%s: %s, want %s", program, got, want)
		}
	}
}
