package image

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/agent"
	"github.com/windows-machine-config/wmco/internal/host/fake"
)

// block is a block of commands between two paragraphs of HACKING.md.
type block struct {
	needs    string // "cluster", "host" or "registry"; "" for no requirement
	commands []string
}

func hackingBlocks(t *testing.T) (blocks []block) {
	t.Helper()
	mark := regexp.MustCompile(`\*(cluster|host|registry)\*:$`)
	needs := ""
	for paragraph := range strings.SplitSeq(readGuide(t, "HACKING.md"), "\n\n") {
		if !strings.HasPrefix(paragraph, "    ") {
			needs = ""
			if found := mark.FindStringSubmatch(strings.TrimSpace(paragraph)); found != nil {
				needs = found[1]
			}
			continue
		}
		b := block{needs: needs}
		for line := range strings.Lines(paragraph) {
			b.commands = append(b.commands, strings.TrimSpace(line))
		}
		blocks = append(blocks, b)
	}
	return blocks
}

//
func TestDeveloperGuide_CommandsAreValid(t *testing.T) {
	seen := map[string]int{}
	for _, b := range hackingBlocks(t) {
		for _, line := range b.commands {
			t.Run(line, func(t *testing.T) {
				program := programOf(line)
				seen[program]++
				check, known := hackingChecks()[program]
				if !known {
					t.Fatalf("nobody checks commands of %s", program)
				}
				check(t, b.needs, line)
			})
		}
	}
	for _, program := range []string{"make", "go test", "go build", "wicd.exe", "kubectl", "contract.exe"} {
		if seen[program] == 0 {
			t.Errorf("there is no command of %s among %v", program, seen)
		}
	}
}

// programOf returns the program of a line. For ssh, it returns the program that runs on the host.
func programOf(line string) string {
	words := strings.Fields(line)
	for strings.Contains(words[0], "=") {
		words = words[1:]
	}
	switch {
	case words[0] == "go":
		return words[0] + " " + words[1]
	case words[0] == "ssh" && strings.Contains(line, "contract.exe"):
		return "contract.exe"
	case strings.HasSuffix(words[0], `\wicd.exe`):
		return "wicd.exe"
	}
	return words[0]
}

func hackingChecks() map[string]func(t *testing.T, needs, line string) {
	marked := func(want string) func(t *testing.T, needs, line string) {
		return func(t *testing.T, needs, line string) {
			if needs != want {
				t.Errorf("it is marked %q, and needs a %s", needs, want)
			}
			if output, err := runCommand(t.Context(), nil, "bash", "-n", "-c", strings.ReplaceAll(line, `\`, "/")); err != nil {
				t.Errorf("no shell reads it: %v: %s", err, output)
			}
		}
	}
	return map[string]func(t *testing.T, needs, line string){
		"make":         checkMakeTarget,
		"go test":      checkCompiles,
		"go build":     checkCompiles,
		"go install":   marked(""), // fetches a debugger
		"kubectl":      checkKubectlLine,
		"contract.exe": checkContractLine,
		"wicd.exe":     checkAgentLine,
		"scp":          marked("host"), "ssh": marked("host"), "dlv": marked("host"), "dir": marked("host"), "type": marked("host"),
	}
}

// checkMakeTarget runs make in dry-run mode.
func checkMakeTarget(t *testing.T, _, line string) {
	t.Helper()
	if output, err := runCommand(t.Context(), nil, "bash", "-c", strings.Replace(line, "make ", "make -n ", 1)); err != nil {
		t.Errorf("%v: %s", err, output)
	}
}

// checkCompiles runs the command, with a different output path.
func checkCompiles(t *testing.T, needs, line string) {
	t.Helper()
	if needs != "" {
		t.Errorf("it is marked %q, and runs anywhere", needs)
	}
	output := filepath.Join(t.TempDir(), "program.exe")
	line = regexp.MustCompile(`-o \S+`).ReplaceAllString(line, "-o "+output)
	if output, err := runCommand(t.Context(), nil, "bash", "-c", line); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	if program, err := os.ReadFile(output); err != nil || !bytes.HasPrefix(program, []byte("MZ")) {
		t.Errorf("it gives no Windows program: %v", err)
	}
}

// checkKubectlLine checks that the product has the names and the patched fields.
func checkKubectlLine(t *testing.T, needs, line string) {
	t.Helper()
	if needs != "cluster" {
		t.Errorf("it is marked %q, and needs a cluster", needs)
	}
	if file := regexp.MustCompile(`-f (\S+)`).FindStringSubmatch(line); file != nil {
		if _, err := os.Stat(filepath.Join(root, file[1])); err != nil {
			t.Error(err)
		}
	} else if !strings.Contains(line, "-n openshift-windows-machine-config-operator ") {
		t.Error("it is for another namespace")
	}
	if patch := regexp.MustCompile(`-p '(.*)'`).FindStringSubmatch(line); patch != nil {
		if err := yaml.UnmarshalStrict([]byte(patch[1]), &v1alpha1.WindowsInstance{}); err != nil {
			t.Errorf("a WindowsInstance has no such field: %v", err)
		}
	}
}

// checkContractLine checks that the suite has the flags and the test.
func checkContractLine(t *testing.T, needs, line string) {
	t.Helper()
	if needs != "host" {
		t.Errorf("it is marked %q, and needs a host", needs)
	}
	source, err := os.ReadFile(filepath.Join(root, "internal/host/windows/contract_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, flag := range regexp.MustCompile(` -([a-z.]+)`).FindAllStringSubmatch(line, -1) {
		if !strings.HasPrefix(flag[1], "test.") && !strings.Contains(string(source), `, "`+flag[1]+`", "`) {
			t.Errorf("the suite has no flag -%s", flag[1])
		}
	}
	name := regexp.MustCompile(`-test\.run=(\w+)/(\w+)`).FindStringSubmatch(line)
	if name == nil || !strings.Contains(string(source), "func "+name[1]+"(") {
		t.Fatalf("the suite has no test %q", name)
	}
	verified, err := os.ReadFile(filepath.Join(root, "docs/verified/results.md"))
	if err != nil || !strings.Contains(string(verified), "| `"+name[2]+".") {
		t.Errorf("no operation of the suite is of %s (%v)", name[2], err)
	}
}

// checkAgentLine runs the agent command against a host in memory, to check its command line.
func checkAgentLine(t *testing.T, needs, line string) {
	t.Helper()
	if needs != "host" {
		t.Errorf("it is marked %q, and needs a host", needs)
	}
	var stdout, stderr bytes.Buffer
	machine := fake.New(fake.Options{})
	agent.Main(t.Context(), agent.Process{Host: machine.Host(), Args: strings.Fields(line)[1:], Version: "v1",
		Executable: `C:\k\wicd\0\wicd.exe`, Stdout: &stdout, Stderr: &stderr, Clock: clock.RealClock{}})
	if stdout.Len() == 0 || stderr.Len() > 0 {
		t.Errorf("the agent says %s%s", stdout.String(), stderr.String())
	}
}
