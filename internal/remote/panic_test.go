package remote_test

import (
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/remote"
)

// Answers of a host are processed in a goroutine of the connection. A panic there would end the operator and its work
// on all hosts.
func TestRun_CallbackPanicReachesCaller(t *testing.T) {
	_, c := hostWith(t, func(p *process) int {
		p.writeLines(helloLine(), stepLine("StartService"), resultLine())
		return 0
	})
	defer func() {
		p, ok := recover().(*remote.Panic)
		if !ok || p.Value != "an unknown step" || !strings.Contains(string(p.Stack), "panic_test.go") {
			t.Errorf("recovered is %+v", p)
		}
	}()
	_, _ = c.Run(t.Context(), agentPath, agentapi.Apply, nil, func(line agentapi.Line) {
		if line.Type == agentapi.TypeStep {
			panic("an unknown step")
		}
	})
	t.Error("the verb returns")
}
