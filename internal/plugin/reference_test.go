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
	document = "../../docs/cli/commands.md"
	begin    = "<!-- begin of the generated reference -->\n"
	end      = "<!-- end of the generated reference -->\n"
)

func newTestCommand() *cobra.Command {
	return New(genericiooptions.NewTestIOStreamsDiscard(), clock.RealClock{}, "test")
}

// documentedCommands returns the commands below a command, sorted by name, each before its subcommands.
func documentedCommands(root *cobra.Command) []*cobra.Command {
	var list []*cobra.Command
	for _, c := range root.Commands() {
		if c.Name() != "help" && c.Name() != "completion" {
			list = append(append(list, c), documentedCommands(c)...)
		}
	}
	return list
}

// commandName returns the name of a command after kubectl windows.
func commandName(c *cobra.Command) string {
	return strings.TrimPrefix(c.CommandPath(), c.Root().CommandPath()+" ")
}

// formatReference returns the help of each command as a document.
func formatReference(root *cobra.Command) string {
	var text strings.Builder
	for _, c := range documentedCommands(root) {
		fmt.Fprintf(&text, "\n### %s\n\n%s\n", commandName(c), wrapText(c.Short+"."))
		if c.Long != "" {
			fmt.Fprintf(&text, "\n%s\n", wrapText(c.Long))
		}
		if c.HasParent() && !c.HasSubCommands() {
			fmt.Fprintf(&text, "\n    kubectl windows %s%s\n", commandName(c), strings.TrimPrefix(c.Use, c.Name()))
		}
		if c.Example != "" {
			fmt.Fprintf(&text, "\n```\n%s\n```\n", c.Example)
		}
		if c.LocalNonPersistentFlags().HasAvailableFlags() {
			fmt.Fprintf(&text, "\n```\n%s```\n", c.LocalNonPersistentFlags().FlagUsages())
		}
	}
	return text.String() + "\n"
}

// maxColumns is the width of prose in documents, as hack/lint-prose checks it.
const maxColumns = 80

// wrapText wraps the paragraphs of a help text. Indented paragraphs become code.
func wrapText(help string) string {
	var text strings.Builder
	for i, paragraph := range strings.Split(help, "\n\n") {
		if i > 0 {
			text.WriteString("\n\n")
		}
		if strings.HasPrefix(paragraph, "  ") {
			text.WriteString("    " + strings.TrimSpace(paragraph))
			continue
		}
		width := 0
		for _, word := range strings.Fields(paragraph) {
			switch {
			case width == 0:
			case width+1+len(word) > maxColumns:
				text.WriteByte('\n')
				width = 0
			default:
				text.WriteByte(' ')
				width++
			}
			text.WriteString(word)
			width += len(word)
		}
	}
	return text.String()
}

func TestReference_MatchesCommands(t *testing.T) {
	old, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, opened := strings.Cut(string(old), begin)
	_, after, closed := strings.Cut(rest, end)
	if !opened || !closed {
		t.Fatalf("%s lacks the lines around the reference", document)
	}
	fresh := before + begin + formatReference(newTestCommand()) + end + after
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

func TestCommands_EachHasValidExample(t *testing.T) {
	for _, c := range documentedCommands(newTestCommand()) {
		if c.Name() == "version" {
			continue
		}
		if !strings.Contains(c.Example, "kubectl windows "+commandName(c)) {
			t.Errorf("%s has no example", commandName(c))
		}
		for _, line := range strings.Split(c.Example, "\n") {
			line, _, _ = strings.Cut(line, ">")
			arguments, is := strings.CutPrefix(strings.TrimSpace(line), "kubectl windows ")
			if !is {
				continue
			}
			found, rest, err := newTestCommand().Find(strings.Fields(arguments))
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

func TestFormatInvocation_FollowsProgramName(t *testing.T) {
	for program, want := range map[string]string{
		"/usr/bin/kubectl-windows": "kubectl windows", "oc-windows": "oc windows", "kubectl-windows.exe": "kubectl windows",
		"/tmp/plugin.test": "kubectl windows",
	} {
		if got := formatInvocation(program); got != want {
			t.Errorf("%s: %s, want %s", program, got, want)
		}
	}
}
