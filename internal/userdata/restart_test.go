package userdata

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// passwordStep is the step of the script that changes sshd_config.
const passwordStep = "sshd rejects passwords"

// errStopped ends a simulated run of a step: a statement failed, or the script was terminated.
var errStopped = errors.New("the step ended early")

// sshdHost simulates the files and the service sshd for the step.
type sshdHost struct {
	files map[string]string
	// loaded is the configuration that the running sshd has read.
	loaded   string
	restarts int
	// effects counts the statements that change the host.
	effects int
	// stopAt is the number of the effect that ends the step; 0 lets the step complete.
	stopAt int
	// after reports whether this effect occurs before the step ends.
	after bool
}

func (h *sshdHost) apply(effect func()) error {
	h.effects++
	if h.effects != h.stopAt {
		effect()
		return nil
	}
	if h.after {
		effect()
	}
	return errStopped
}

func (h *sshdHost) restartService() {
	h.restarts++
	h.loaded = h.files[`ssh\sshd_config`]
}

// Statements that the simulation of the step supports.
var (
	pathStatement    = regexp.MustCompile(`^(\$\w+) = Join-Path \$env:ProgramData '([^']+)'$`)
	literalStatement = regexp.MustCompile(`^(\$\w+) = '([^']*)'$`)
	readStatement    = regexp.MustCompile(`^(\$\w+) = \[IO\.File\]::ReadAllText\((\$\w+)\)$`)
	replaceStatement = regexp.MustCompile(`^(\$\w+) = \[regex\]::Replace\((\$\w+), '([^']+)', (\$\w+)\)$`)
	prefixStatement  = regexp.MustCompile("^if \\(-not (\\$\\w+)\\.StartsWith\\((\\$\\w+), \\[StringComparison\\]::Ordinal\\)\\) " +
		"\\{ \\$changed = \"\\$line`r`n\\$changed\" \\}$")
	differsCondition = regexp.MustCompile(`^if \((\$\w+) -cne (\$\w+)\) \{$`)
	existsCondition  = regexp.MustCompile(`^if \(\[IO\.File\]::Exists\((\$\w+)\)\) \{$`)
	writeStatement   = regexp.MustCompile(`^\[IO\.File\]::WriteAllText\((\$\w+), (\$\w+|'')\)$`)
	deleteStatement  = regexp.MustCompile(`^\[IO\.File\]::Delete\((\$\w+)\)$`)
)

// stepLines returns the statements of a step.
func stepLines(t *testing.T, script, name string) []string {
	t.Helper()
	_, rest, found := strings.Cut(script, "\nInvoke-Step '"+name+"' 1 {\n")
	body, _, closed := strings.Cut(rest, "\n}\n")
	if !found || !closed {
		t.Fatalf("the script has no step %q", name)
	}
	lines := strings.Split(body, "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return lines
}

// runStep executes the statements of the step on a simulated host.
func runStep(t *testing.T, lines []string, h *sshdHost) error {
	t.Helper()
	variables := map[string]string{"''": ""}
	skipped := false
	for _, line := range lines {
		if line == "}" {
			skipped = false
			continue
		}
		if skipped {
			continue
		}
		var err error
		switch {
		case pathStatement.MatchString(line), literalStatement.MatchString(line):
			m := slices.Concat(pathStatement.FindStringSubmatch(line), literalStatement.FindStringSubmatch(line))
			variables[m[1]] = m[2]
		case readStatement.MatchString(line):
			m := readStatement.FindStringSubmatch(line)
			variables[m[1]] = h.files[variables[m[2]]]
		case replaceStatement.MatchString(line):
			m := replaceStatement.FindStringSubmatch(line)
			variables[m[1]] = regexp.MustCompile(m[3]).ReplaceAllString(variables[m[2]], variables[m[4]])
		case prefixStatement.MatchString(line):
			m := prefixStatement.FindStringSubmatch(line)
			if !strings.HasPrefix(variables[m[1]], variables[m[2]]) {
				variables[m[1]] = variables[m[2]] + "\r\n" + variables[m[1]]
			}
		case differsCondition.MatchString(line):
			m := differsCondition.FindStringSubmatch(line)
			skipped = variables[m[1]] == variables[m[2]]
		case existsCondition.MatchString(line):
			_, exists := h.files[variables[existsCondition.FindStringSubmatch(line)[1]]]
			skipped = !exists
		case writeStatement.MatchString(line):
			m := writeStatement.FindStringSubmatch(line)
			err = h.apply(func() { h.files[variables[m[1]]] = variables[m[2]] })
		case deleteStatement.MatchString(line):
			m := deleteStatement.FindStringSubmatch(line)
			err = h.apply(func() { delete(h.files, variables[m[1]]) })
		case line == "Restart-Service -Name sshd":
			err = h.apply(h.restartService)
		default:
			t.Fatalf("the simulation does not support the statement %s", line)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// A failed restart of sshd is retried, in the same run of the script and in a later run: until then sshd
// accepts passwords. A step that ends at any other statement is completed by the next try as well.
func TestScript_FailedSSHDRestartRetried(t *testing.T) {
	lines := stepLines(t, mustGenerate(t, "AWS"), passwordStep)
	newHost := func() *sshdHost {
		const config = "Port 22\r\n#PasswordAuthentication yes\r\n"
		return &sshdHost{files: map[string]string{`ssh\sshd_config`: config}, loaded: config}
	}
	isDone := func(t *testing.T, h *sshdHost) {
		t.Helper()
		if !strings.HasPrefix(h.loaded, "PasswordAuthentication no\r\n") {
			t.Errorf("the running sshd has read %q", h.loaded)
		}
		restarts, effects := h.restarts, h.effects
		if err := runStep(t, lines, h); err != nil || h.effects != effects || h.restarts != restarts {
			t.Errorf("the next run changes the host again, or restarts sshd: %+v, error %v", h, err)
		}
	}
	undisturbed := newHost()
	if err := runStep(t, lines, undisturbed); err != nil {
		t.Fatal(err)
	}
	t.Run("sshd is restarted once", func(t *testing.T) {
		if undisturbed.restarts != 1 {
			t.Errorf("it is restarted %d times", undisturbed.restarts)
		}
		isDone(t, undisturbed)
	})
	for effect := range undisturbed.effects {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("the step ends at effect %d, which takes place: %t", effect+1, after), func(t *testing.T) {
				h := newHost()
				h.stopAt, h.after = effect+1, after
				if err := runStep(t, lines, h); !errors.Is(err, errStopped) {
					t.Fatalf("it did not end there: %v", err)
				}
				if err := runStep(t, lines, h); err != nil {
					t.Fatal(err)
				}
				isDone(t, h)
			})
		}
	}
}
