package plugin

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	kubectl "k8s.io/kubectl/pkg/cmd/plugin"
	"k8s.io/utils/clock"
)

// TestMain allows the test program to act as the program that kubectl calls to complete a line.
func TestMain(m *testing.M) {
	if !strings.Contains(filepath.Base(os.Args[0]), "windows") {
		os.Exit(m.Run())
	}
	root := New(genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}, clock.RealClock{}, "test")
	root.SetArgs(Arguments(os.Args))
	if err := root.ExecuteContext(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func TestCompletion_KubectlCompletesCommands(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"kubectl-windows", "kubectl_complete-windows"} {
		if err := os.Symlink(program, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	for line, want := range map[string]string{
		"windows machineset g":           "generate\tWrite the MachineSet as YAML",
		"windows userdata --platform=No": "None",
		"windows stat":                   "status\tShow the status of Windows hosts and their next action",
	} {
		arguments := strings.Fields(line)
		root := &cobra.Command{Use: "kubectl"}
		kubectl.SetupPluginCompletion(root, arguments)
		command, rest, err := root.Find(arguments)
		if err != nil || command.ValidArgsFunction == nil {
			t.Fatalf("%s: kubectl does not know the plugin: %v", line, err)
		}
		last := len(rest) - 1
		offered, _ := command.ValidArgsFunction(command, rest[:last], rest[last])
		if !slices.ContainsFunc(offered, func(choice string) bool { return strings.HasPrefix(choice, want) }) {
			t.Errorf("%s: kubectl offers %q, want %q", line, offered, want)
		}
	}
}

func TestArguments_DependOnProgramName(t *testing.T) {
	for program, want := range map[string]string{
		"/usr/bin/kubectl-windows": "status win-1", "kubectl_complete-windows.exe": "__complete status win-1",
		"/opt/oc_complete-windows": "__complete status win-1", "my_complete-thing": "status win-1",
	} {
		if got := strings.Join(Arguments([]string{program, "status", "win-1"}), " "); got != want {
			t.Errorf("%s: %s, want %s", program, got, want)
		}
	}
}
