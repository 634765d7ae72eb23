package testenv

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// recheckInterval is the check interval of WaitFor while no watched object changes.
const recheckInterval = 500 * time.Millisecond

// WaitFor waits until the condition holds. The condition is checked at once, after each change of an object of the
// kind of watched, and periodically, since it may depend on other state. The reader is a cache that includes the last
// change. If the wait ends too early, the error contains the progress of each instance.
func (r *Environment) WaitFor(ctx context.Context, what string, watched client.Object, condition func(context.Context,
	client.Reader) (bool, error)) error {
	informer, err := r.cache.GetInformer(ctx, watched)
	if err != nil {
		return fmt.Errorf("wait for %s: watch: %w", what, err)
	}
	changed := make(chan struct{}, 1)
	notify := func() {
		select {
		case changed <- struct{}{}:
		default: // a change is already pending
		}
	}
	handler, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { notify() }, UpdateFunc: func(any, any) { notify() }, DeleteFunc: func(any) { notify() },
	})
	if err != nil {
		return fmt.Errorf("wait for %s: watch: %w", what, err)
	}
	defer func() { _ = informer.RemoveEventHandler(handler) }() // fails only after the cache has stopped
	ticker := time.NewTicker(recheckInterval)
	defer ticker.Stop()
	for {
		ok, err := condition(ctx, r.cache)
		if err != nil {
			return fmt.Errorf("wait for %s: %w", what, err)
		}
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ticker.C:
		case <-r.cluster.Done():
			return fmt.Errorf("wait for %s: the control plane has ended", what)
		case <-r.running.Done():
			return fmt.Errorf("wait for %s: %w", what, context.Cause(r.running))
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w; the instances:\n%s", what, context.Cause(ctx), r.describeInstances())
		}
	}
}

// WaitForInstance waits until the instance of a host meets the condition. The instance is nil while there is none.
func (r *Environment) WaitForInstance(ctx context.Context, h *Host, what string,
	condition func(*v1alpha1.WindowsInstance) bool) error {
	return r.WaitFor(ctx, h.Options.Name+" "+what, &v1alpha1.WindowsInstance{},
		func(ctx context.Context, reader client.Reader) (bool, error) {
			instance, err := r.findInstance(ctx, reader, h)
			return err == nil && condition(instance), err
		})
}

// WaitReady waits until the instances of hosts, by computer name, are Ready; all hosts if no name is given.
func (r *Environment) WaitReady(ctx context.Context, names ...string) error {
	for _, h := range r.hostsNamed(names) {
		if err := r.WaitForInstance(ctx, h, "to be Ready", IsReady); err != nil {
			return err
		}
	}
	return nil
}

// WaitGone waits until the host no longer has an instance.
func (r *Environment) WaitGone(ctx context.Context, name string) error {
	return r.WaitForInstance(ctx, r.Host(name), "to be gone", func(instance *v1alpha1.WindowsInstance) bool {
		return instance == nil
	})
}

// IsReady reports whether an instance, which may be nil, is Ready in its current generation.
func IsReady(instance *v1alpha1.WindowsInstance) bool {
	return instance != nil && instance.Status.ObservedGeneration == instance.Generation &&
		meta.IsStatusConditionTrue(instance.Status.Conditions, v1alpha1.ConditionReady)
}

// Instance returns the current instance of a host from the API server; nil if there is none.
func (r *Environment) Instance(ctx context.Context, name string) (*v1alpha1.WindowsInstance, error) {
	return r.findInstance(ctx, r.Client, r.Host(name))
}

func (r *Environment) findInstance(ctx context.Context, reader client.Reader, h *Host) (*v1alpha1.WindowsInstance, error) {
	var list v1alpha1.WindowsInstanceList
	if err := reader.List(ctx, &list, client.InNamespace(r.Namespace())); err != nil {
		return nil, fmt.Errorf("list instances: %w", err)
	}
	address, _ := h.Entry()
	for i := range list.Items {
		if list.Items[i].Spec.Address == address {
			return &list.Items[i], nil
		}
	}
	return nil, nil
}

// describeInstances returns the progress of each instance, for the error of a wait.
func (r *Environment) describeInstances() string {
	ctx, cancel := context.WithTimeout(r.running, 10*time.Second)
	defer cancel()
	var list v1alpha1.WindowsInstanceList
	if err := r.Client.List(ctx, &list, client.InNamespace(r.Namespace())); err != nil {
		return err.Error()
	}
	var b strings.Builder
	for i := range list.Items {
		b.WriteString(Explain(&list.Items[i]))
	}
	b.WriteString(r.describeMachines(ctx))
	return b.String()
}

// Explain lists the conditions that keep an instance from being Ready.
func Explain(instance *v1alpha1.WindowsInstance) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s): %s\n", instance.Name, instance.Spec.Address, instance.Status.Summary)
	for _, condition := range instance.Status.Conditions {
		if condition.Status != metav1.ConditionTrue && condition.Reason != v1alpha1.ReasonDependencyNotReady {
			fmt.Fprintf(&b, "  %s=%s %s: %s\n", condition.Type, condition.Status, condition.Reason, condition.Message)
		}
	}
	if step := instance.Status.Step; step != nil {
		fmt.Fprintf(&b, "  step %d of %d: %s %s\n", step.Index, step.Total, step.Name, step.Detail)
	}
	if instance.Status.NextAction != "" {
		fmt.Fprintf(&b, "  next: %s\n", instance.Status.NextAction)
	}
	return b.String()
}
