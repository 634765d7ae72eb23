package upgrade

import (
	"context"
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/operator"
	"github.com/windows-machine-config/wmco/internal/policy/support"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// checkClusterVersionWait upgrades the operator to a release that needs a later patch version of OpenShift than the
// lab's, and then upgrades the cluster.
func (l lab) checkClusterVersionWait(o *testenv.Operator, h *testenv.Host) {
	l.Helper()
	const present, needed = "5.0.3", "5.0.4"
	line := support.ReleaseLine{Operator: 12, Minors: []support.Minor{{OpenShift: "5.0", Kubernetes: "1.36", MinPatch: 4}}}
	w, before, touched := l.watchAvailability(nil), h.Machine().Journal().Count(fake.KindConnection), serviceOperations(h)
	l.Cleanup(func() { // the control plane is shared
		if err := l.UpgradeCluster(context.WithoutCancel(l.Context()), present, true); err != nil {
			l.Error(err)
		}
	})

	l.requireNoError(o.Stop())
	o = l.startOperator(otherComponents, func(c *operator.Config) { c.Line = line })
	untouched := func() {
		l.Helper()
		message := l.waitForFalse(h.Options.Name, v1alpha1.ConditionUpToDate, v1alpha1.ReasonClusterVersionUnsupported)
		if !strings.Contains(message, "OpenShift "+present) || !strings.Contains(message, "OpenShift "+needed) {
			l.Errorf("the instance says %q, which does not name both versions", message)
		}
		l.waitForReadsOnly()
		if n := h.Machine().Journal().Count(fake.KindConnection) - before; n > 0 || serviceOperations(h) != touched {
			l.Errorf("%d connections to the host, its services were touched: %v", n, serviceOperations(h) != touched)
		}
		if node := l.nodeOf(h.NodeName()); node.Annotations[v1alpha1.AnnotationVersion] != releaseByName(l.T, patch2).Version ||
			!isInService(node) {
			l.Errorf("the node is of version %s, in service: %v", node.Annotations[v1alpha1.AnnotationVersion], isInService(node))
		}
		w.checkBudget(0, 0)
	}
	untouched()
	if !slices.ContainsFunc(l.listWarnings(), func(warning string) bool {
		return strings.HasPrefix(warning, "Deployment ") && strings.Contains(warning, v1alpha1.ReasonClusterVersionUnsupported) &&
			strings.Contains(warning, needed)
	}) {
		l.Errorf("no event of the operator's Deployment names the version that is needed: %s",
			strings.Join(l.listWarnings(), "\n"))
	}
	l.requireNoError(l.UpgradeCluster(l.Context(), needed, false))
	untouched() // during the cluster's own upgrade

	l.requireNoError(l.UpgradeCluster(l.Context(), needed, true))
	l.waitUntilUpgraded(otherComponents, 1, waitTimeout)
	w.checkBudget(1, 0)
	l.requireNoError(o.Stop())
}
