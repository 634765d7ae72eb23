package wine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/operator"
	"github.com/windows-machine-config/wmco/lab/wine"
)

// repairTimeout is the maximum time for a repair by the agent on a busy machine.
const repairTimeout = 90 * time.Second

// checkDriftRepair causes one drift after the other on a node, and waits for each repair.
func checkDriftRepair(t *testing.T, h *wine.Host) {
	t.Helper()
	want, exporter := commandLine(t, h, "kube-proxy"), processID(t, h, "windows_exporter")
	same := func() bool { return commandLine(t, h, "kube-proxy") == want && processID(t, h, "kube-proxy") != "" }
	for _, c := range []struct {
		name, harm string
		repaired   func() bool
	}{
		{"a service is stopped", administratorPath + " stop kube-proxy", same},
		{"a service that others depend on is stopped", administratorPath + " stop containerd", func() bool {
			return processID(t, h, "containerd") != "" && processID(t, h, "kubelet") != ""
		}},
		{"a command line is changed", administratorPath + ` set kube-proxy C:\k\other.exe`, same},
		{"a service is deleted", administratorPath + " stop windows_exporter & " + administratorPath +
			" delete windows_exporter", func() bool {
			now := processID(t, h, "windows_exporter")
			return now != "" && now != exporter
		}},
		{"a configuration file is gone", `del C:\k\kubelet.conf`, func() bool { return hasFile(t, h, `C:\k\kubelet.conf`) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			start := time.Now()
			result, err := h.Exec(t.Context(), c.harm)
			requireNoError(t, err)
			if result.ExitCode != 0 {
				t.Fatalf("%s: %+v", c.harm, result)
			}
			waitUntil(t, "the repair", c.repaired)
			t.Logf("put back after %s", time.Since(start).Round(100*time.Millisecond))
		})
	}
	// The agent logs a step after the step took effect.
	for _, reported := range []string{"kube-proxy", "containerd", "windows_exporter", "kubelet.conf"} {
		t.Run("the agent's log names "+reported, func(t *testing.T) {
			defer func() {
				if t.Failed() {
					t.Log(agentLog(t, h))
				}
			}()
			waitUntil(t, "the log of the agent says "+reported, func() bool { return strings.Contains(agentLog(t, h), reported) })
		})
	}
}

// agentLog returns the complete log of the agent's service.
func agentLog(t *testing.T, h *wine.Host) string {
	t.Helper()
	dir, err := h.Path(nodespec.LogDirectory(nodespec.ServiceAgent))
	requireNoError(t, err)
	entries, err := os.ReadDir(dir)
	requireNoError(t, err)
	var text strings.Builder
	for _, entry := range entries {
		data, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		requireNoError(t, err)
		text.Write(data)
	}
	return text.String()
}

// waitUntil polls until the condition holds, because a host has no watch. Most checks start a process under Wine.
func waitUntil(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.NewTimer(repairTimeout)
	defer deadline.Stop()
	again := time.NewTicker(500 * time.Millisecond)
	defer again.Stop()
	for !holds() {
		select {
		case <-again.C:
		case <-deadline.C:
			t.Fatalf("waited %s in vain: %s", repairTimeout, what)
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
	}
}

// processID returns the process ID of a running service, or "" if the service does not run or does not exist.
func processID(t *testing.T, h *wine.Host, service string) string {
	return runAdministrator(t, h, "state "+service)
}

// commandLine returns the command line of a service from the service control manager.
func commandLine(t *testing.T, h *wine.Host, service string) string {
	return runAdministrator(t, h, "get "+service)
}

func runAdministrator(t *testing.T, h *wine.Host, words string) string {
	t.Helper()
	result, err := h.Exec(t.Context(), administratorPath+" "+words)
	requireNoError(t, err)
	return strings.TrimSpace(result.Stdout)
}

func hasFile(t *testing.T, h *wine.Host, windows string) bool {
	t.Helper()
	path, err := h.Path(windows)
	requireNoError(t, err)
	_, err = os.Stat(path)
	return err == nil
}

// countAgents returns the number of agents installed on a host.
func countAgents(t *testing.T, h *wine.Host) int {
	t.Helper()
	root, err := h.Path(nodespec.AgentRoot)
	requireNoError(t, err)
	found, err := filepath.Glob(filepath.Join(root, "*", nodespec.AgentProgram))
	requireNoError(t, err)
	return len(found)
}

// runOperatorVersion runs an operator of another version, with an agent of that version in the payload.
func (l *lab) runOperatorVersion(version string) {
	l.Helper()
	dir := payloadOf(l.T, version, payloadOptions)
	_, err := l.RunOperator(func(c *operator.Config) { c.Version, c.PayloadDirectory = version, dir })
	requireNoError(l.T, err)
}
