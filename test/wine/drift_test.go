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

// repairLimit is the maximum time for a repair by the agent on a busy machine.
const repairLimit = 90 * time.Second

// drifts causes one drift after the other on a node, and waits for each repair.
func drifts(t *testing.T, h *wine.Host) {
	t.Helper()
	want, exporter := commandLine(t, h, "kube-proxy"), process(t, h, "windows_exporter")
	same := func() bool { return commandLine(t, h, "kube-proxy") == want && process(t, h, "kube-proxy") != "" }
	for _, c := range []struct {
		name, harm string
		repaired   func() bool
	}{
		{"a service is stopped", administratorPath + " stop kube-proxy", same},
		{"a service that others depend on is stopped", administratorPath + " stop containerd", func() bool {
			return process(t, h, "containerd") != "" && process(t, h, "kubelet") != ""
		}},
		{"a command line is changed", administratorPath + ` set kube-proxy C:\k\other.exe`, same},
		{"a service is deleted", administratorPath + " stop windows_exporter & " + administratorPath +
			" delete windows_exporter", func() bool {
			now := process(t, h, "windows_exporter")
			return now != "" && now != exporter
		}},
		{"a configuration file is gone", `del C:\k\kubelet.conf`, func() bool { return exists(t, h, `C:\k\kubelet.conf`) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			began := time.Now()
			result, err := h.Exec(t.Context(), c.harm)
			must(t, err)
			if result.ExitCode != 0 {
				t.Fatalf("%s: %+v", c.harm, result)
			}
			eventually(t, "the repair", c.repaired)
			t.Logf("put back after %s", time.Since(began).Round(100*time.Millisecond))
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
			eventually(t, "the log of the agent says "+reported, func() bool { return strings.Contains(agentLog(t, h), reported) })
		})
	}
}

// agentLog returns the complete log of the agent's service.
func agentLog(t *testing.T, h *wine.Host) string {
	t.Helper()
	folder, err := h.Path(nodespec.LogDirectory(nodespec.ServiceAgent))
	must(t, err)
	entries, err := os.ReadDir(folder)
	must(t, err)
	var text strings.Builder
	for _, entry := range entries {
		data, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		must(t, err)
		text.Write(data)
	}
	return text.String()
}

// eventually polls until the condition holds, because a host has no watch. Most checks start a process under Wine.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.NewTimer(repairLimit)
	defer deadline.Stop()
	again := time.NewTicker(500 * time.Millisecond)
	defer again.Stop()
	for !holds() {
		select {
		case <-again.C:
		case <-deadline.C:
			t.Fatalf("waited %s in vain: %s", repairLimit, what)
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
	}
}

// process returns the process ID of a running service, or "" if the service does not run or does not exist.
func process(t *testing.T, h *wine.Host, service string) string {
	return administer(t, h, "state "+service)
}

// commandLine returns the command line of a service from the service control manager.
func commandLine(t *testing.T, h *wine.Host, service string) string {
	return administer(t, h, "get "+service)
}

func administer(t *testing.T, h *wine.Host, words string) string {
	t.Helper()
	result, err := h.Exec(t.Context(), administratorPath+" "+words)
	must(t, err)
	return strings.TrimSpace(result.Stdout)
}

func exists(t *testing.T, h *wine.Host, windows string) bool {
	t.Helper()
	path, err := h.Path(windows)
	must(t, err)
	_, err = os.Stat(path)
	return err == nil
}

// programs returns the number of agents installed on a host.
func programs(t *testing.T, h *wine.Host) int {
	t.Helper()
	root, err := h.Path(nodespec.AgentRoot)
	must(t, err)
	found, err := filepath.Glob(filepath.Join(root, "*", nodespec.AgentProgram))
	must(t, err)
	return len(found)
}

// upgrade runs an operator of another version, with an agent of that version in the payload.
func (l *lab) upgrade(version string) {
	l.Helper()
	dir := payloadOf(l.T, version, payloadOptions)
	_, err := l.RunOperator(func(c *operator.Config) { c.Version, c.PayloadDirectory = version, dir })
	must(l.T, err)
}
