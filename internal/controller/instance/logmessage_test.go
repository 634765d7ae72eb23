package instance

import (
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
)

func TestLogMessage_HostTextIsTruncated(t *testing.T) {
	for name, outcome := range map[string]result.Outcome{"of a failure": result.Retry, "of a wait": result.Wait} {
		t.Run(name, func(t *testing.T) {
			x := newTrial(t)
			x.asNode(machineInstance(), x.key.Hash())
			var lines strings.Builder
			ctx := log.IntoContext(t.Context(), funcr.New(func(_, line string) { lines.WriteString(line + "\n") }, funcr.Options{Verbosity: 1}))
			s := x.newRespondingScope(nil)
			s.Result = &result.Result{Condition: v1alpha1.ConditionReady, Reason: v1alpha1.ReasonChecksFailed, Outcome: outcome,
				Message: "KubeletHealthy: \x1b[2J" + strings.Repeat("x", 2<<20)}
			x.requeueResult(ctx, x.newDependencies().events, s)
			if got := lines.String(); len(got) > 2*maxLogMessage || strings.Contains(got, "\x1b") || !strings.Contains(got, "KubeletHealthy: [2Jxxx") {
				t.Errorf("the log has %d bytes: %.200s", len(got), got)
			}
		})
	}
}
