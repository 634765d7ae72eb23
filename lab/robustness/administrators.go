package robustness

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

// changeListedHosts applies an action to the desired state, and writes windows-instances.
func (l *lab) changeListedHosts(ctx context.Context, a Action) (func(context.Context) error, error) {
	l.model.Apply(a)
	return nil, l.list(ctx)
}

// unlistHost removes a host from windows-instances. The instance must exist with facts about the host: a deleted object
// is recreated from the list only, and has no facts of the host before the operator has connected. The instance must
// also have the right user. An operator that was stopped may not know the user in the entry, but needs the user to
// restore the host.
func (l *lab) unlistHost(ctx context.Context, a Action) (func(context.Context) error, error) {
	instance, err := l.instanceOf(ctx, a.Host)
	if err != nil || instance == nil || instance.Spec.Username == wrongUser || l.hosts[a.Host].instanceDeleted && instance.Status.HostKey == nil {
		return nil, err
	}
	if address, _ := l.Host(a.Host).Entry(); l.entries[address] != "" {
		return nil, nil
	}
	if err := l.recordKubeletKeys(l.Host(a.Host)); err != nil { // they are deleted with the node
		return nil, err
	}
	return l.changeListedHosts(ctx, a)
}

// wrongUser is a user that no host has.
const wrongUser = "nobody"

func (l *lab) wrongEntry(ctx context.Context, a Action) (func(context.Context) error, error) {
	address, _ := l.Host(a.Host).Entry()
	l.entries[address] = "username=" + wrongUser
	return func(ctx context.Context) error {
		delete(l.entries, address)
		return l.list(ctx)
	}, l.list(ctx)
}

// invalidValue is the value of an invalid key.
const invalidValue = "username=Administrator,port=22"

func (l *lab) invalidEntry(ctx context.Context, a Action) (func(context.Context) error, error) {
	l.entries[a.Text] = invalidValue
	return func(ctx context.Context) error {
		delete(l.entries, a.Text)
		return l.list(ctx)
	}, l.list(ctx)
}

func (l *lab) setMaxUnavailable(ctx context.Context, a Action) (func(context.Context) error, error) {
	l.model.Apply(a)
	return nil, l.patchPolicy(ctx, fmt.Sprintf(`{"spec":{"maxUnavailable":%d}}`, a.Number))
}

func (l *lab) pausePolicy(ctx context.Context, _ Action) (func(context.Context) error, error) {
	return func(ctx context.Context) error { return l.patchPolicy(ctx, `{"spec":{"paused":false}}`) },
		l.patchPolicy(ctx, `{"spec":{"paused":true}}`)
}

func (l *lab) pauseHost(ctx context.Context, a Action) (func(context.Context) error, error) {
	return func(ctx context.Context) error { return l.patchInstance(ctx, a.Host, `{"spec":{"paused":false}}`) },
		l.patchInstance(ctx, a.Host, `{"spec":{"paused":true}}`)
}

func (l *lab) requestReboot(ctx context.Context, a Action) (func(context.Context) error, error) {
	return nil, l.patchNode(ctx, a.Host, annotationPatch(v1alpha1.AnnotationRebootRequired, ""))
}

func (l *lab) patchNode(ctx context.Context, host, patch string) error {
	node, err := l.nodeOf(ctx, host)
	if err != nil || node == nil {
		return err
	}
	return client.IgnoreNotFound(l.Client.Patch(ctx, node, client.RawPatch(types.MergePatchType, []byte(patch))))
}

func (l *lab) requestRetry(ctx context.Context, a Action) (func(context.Context) error, error) {
	return nil, l.patchInstance(ctx, a.Host, annotationPatch(v1alpha1.AnnotationRetry, "now"))
}

// deleteInstance deletes the object of a listed host. Without the list, the object would not be recreated.
func (l *lab) deleteInstance(ctx context.Context, a Action) (func(context.Context) error, error) {
	instance, err := l.instanceOf(ctx, a.Host)
	if err != nil || instance == nil || !l.model.Listed[a.Host] {
		return nil, err
	}
	l.hosts[a.Host].instanceDeleted = true
	return nil, client.IgnoreNotFound(l.Client.Delete(ctx, instance))
}

func (l *lab) deleteNode(ctx context.Context, a Action) (func(context.Context) error, error) {
	node, err := l.nodeOf(ctx, a.Host)
	if err != nil || node == nil {
		return nil, err
	}
	return nil, client.IgnoreNotFound(l.Client.Delete(ctx, node))
}

// setCordon cordons or uncordons a Node like a user, unless the operator has cordoned the Node.
func (l *lab) setCordon(ctx context.Context, a Action) (func(context.Context) error, error) {
	node, err := l.nodeOf(ctx, a.Host)
	if err != nil || node == nil {
		return nil, err
	}
	if _, operators := node.Annotations[v1alpha1.AnnotationCordoned]; operators {
		return nil, nil
	}
	before := node.DeepCopy()
	node.Spec.Unschedulable = a.Kind == Cordon
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := l.Client.Patch(ctx, node, patch); err != nil {
		return nil, nil //nolint:nilerr // somebody was faster: the user looks again, and finds no reason
	}
	if l.hosts[a.Host].cordoned = ""; a.Kind == Cordon {
		l.hosts[a.Host].cordoned = node.UID
	}
	return nil, nil
}

func (l *lab) setMaxPods(ctx context.Context, a Action) (func(context.Context) error, error) {
	l.model.Apply(a)
	return nil, l.SetKubeletSettings(ctx, map[string]any{"maxPods": a.Number})
}

func (l *lab) rotateKey(ctx context.Context, a Action) (func(context.Context) error, error) {
	l.model.Apply(a)
	err := l.RotateKey(ctx, true)
	l.secrets.AddKey("the second SSH private key", l.PrivateKey())
	return nil, err
}

// machineSet is the only MachineSet in labs with the Machine API.
const machineSet = "windows"

func (l *lab) scaleMachines(ctx context.Context, a Action) (func(context.Context) error, error) {
	if l.shape.Machines == 0 {
		return nil, nil
	}
	for _, h := range l.MachineHosts() {
		if err := l.recordKubeletKeys(h); err != nil { // some hosts may be deleted
			return nil, err
		}
	}
	l.model.Apply(a)
	return nil, l.Scale(ctx, machineSet, int32(a.Number))
}

// awaitDesiredState waits until the desired state is reached or the time has passed: something may block the progress.
func (l *lab) awaitDesiredState(ctx context.Context, a Action) (func(context.Context) error, error) {
	for until := time.Now().Add(a.For); time.Now().Before(until); {
		if missing, _, err := l.findMissing(ctx); err != nil || len(missing) == 0 {
			return nil, err
		}
		if err := l.waitPause(ctx, 2*tick); err != nil {
			return nil, err
		}
	}
	return nil, nil
}
