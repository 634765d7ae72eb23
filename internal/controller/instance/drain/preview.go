package drain

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/windows-machine-config/wmco/internal/controller/instance/result"
	"github.com/windows-machine-config/wmco/internal/sanitize"
)

// Eviction is a pod that a drain would evict.
type Eviction struct {
	Namespace, Name string
	// Refused is the reason why the API server would refuse the eviction now; empty if it would not.
	Refused string
}

// Preview returns the pods that evictPods would evict from a node. Each eviction is sent to the API server as a dry
// run, so that admission and the pod disruption budgets decide.
func (d Drainer) Preview(ctx context.Context, node *corev1.Node) ([]Eviction, error) {
	helper := d.newHelper(ctx)
	helper.DryRunStrategy = cmdutil.DryRunServer
	list, errs := helper.GetPodsForDeletion(node.Name)
	if len(errs) > 0 {
		return nil, fmt.Errorf("list the pods of Node %s: %w", node.Name, errors.Join(errs...))
	}
	var evictions []Eviction
	for _, pod := range list.Pods() {
		err := helper.EvictPod(pod, policyv1.SchemeGroupVersion)
		if apierrors.IsNotFound(err) {
			continue // the pod has ended meanwhile
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("request a dry-run eviction of pod %s/%s: %w", pod.Namespace, pod.Name, context.Cause(ctx))
		}
		eviction := Eviction{Namespace: pod.Namespace, Name: pod.Name}
		if err != nil {
			eviction.Refused = d.evictionBlocker(ctx, pod, err)
		}
		evictions = append(evictions, eviction)
	}
	return evictions, nil
}

// evictionBlocker returns the reason for a refused eviction: the name of the budget, or the message of the API server
// or of a webhook, which may refuse for other reasons.
func (d Drainer) evictionBlocker(ctx context.Context, pod corev1.Pod, err error) string {
	if apierrors.IsTooManyRequests(err) {
		if budgets := d.blockingBudgets(ctx, []corev1.Pod{pod}); len(budgets) > 0 {
			return formatBlockingBudgets(budgets)
		}
	}
	return sanitize.Plain(err.Error(), result.MaxMessageLength)
}
