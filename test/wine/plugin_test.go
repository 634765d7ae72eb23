package wine_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/lab/fakepod"
	"github.com/windows-machine-config/wmco/lab/wine"
)

// checkPluginCommands runs the commands of kubectl windows that query the agent on a host, over the operator's SSH
// connection.
func (l *lab) checkPluginCommands(t *testing.T, pod fakepod.Pod, h *wine.Host) {
	t.Helper()
	name := ""
	l.waitForInstance(h, "to have a name", func(instance *v1alpha1.WindowsInstance) bool {
		if instance != nil {
			name = instance.Name
		}
		return name != ""
	})
	runPlugin := func(words []string, arguments ...string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
		defer cancel()
		out, status, err := pod.Windows(ctx, l.Cluster().Kubeconfig, arguments...)
		if err != nil || status != 0 {
			t.Errorf("kubectl windows %s ended with status %d, %v:\n%s", strings.Join(arguments, " "), status, err, out)
		}
		for _, word := range words {
			if !strings.Contains(out, word) {
				t.Errorf("kubectl windows %s does not print %q:\n%s", strings.Join(arguments, " "), word, out)
			}
		}
		return out
	}
	plan := runPlugin([]string{name + " (" + addressOf(h), "no change"}, "plan", name)
	runPlugin([]string{"passed"}, "diagnose", name)
	runPlugin([]string{nodespec.ServiceKubelet + "\n", nodespec.ServiceAgent + "\n"}, "logs", name)
	if log := runPlugin(nil, "logs", name, nodespec.ServiceAgent, "--tail=1"); strings.Count(log, "\n") != 1 {
		t.Errorf("the last line of the agent's log is %q", log)
	}

	dir := t.TempDir()
	runPlugin(nil, "gather", name, "--dest-dir", dir)
	for file, words := range map[string][]string{
		"plan.txt":          {plan},
		"last-commands.txt": {"apply\n", "verify\n", "completed\n"},
		"host.json":         {`"hostName"`, `"` + nodespec.ServiceKubelet + `"`, `"` + nodespec.ServiceAgent + `"`},
	} {
		content, err := os.ReadFile(filepath.Join(dir, "hosts", name, file))
		if err != nil {
			t.Error(err)
		}
		for _, word := range words {
			if !strings.Contains(string(content), word) {
				t.Errorf("%s of the archive has no %q:\n%s", file, word, content)
			}
		}
	}
}
