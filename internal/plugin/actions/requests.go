package actions

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/cmdutil"
	"github.com/windows-machine-config/wmco/internal/fleet"
)

// New returns the commands.
func New(a *cmdutil.Access) []*cobra.Command {
	return []*cobra.Command{newCommand(a, pause), newCommand(a, resume), newCommand(a, retry), newCommand(a, reboot),
		acceptHostKey(a), newCommand(a, forget)}
}

// shortTimeout is the timeout for requests that the operator completes without the host.
const shortTimeout = time.Minute

var pause = request{
	use: "pause NAME...", short: "Pause the management of hosts",
	long:    `Set spec.paused of WindowsInstances. The operator does not change the hosts and does not repair the nodes. The nodes stay in service.`,
	example: "  kubectl windows pause win-worker-1",
	write:   func(ctx context.Context, c client.Client, i fleet.Instance) error { return setPaused(ctx, c, i, true) },
	done:    pauseObserved(true), doneMessage: "paused", timeout: shortTimeout,
}

var resume = request{
	use: "resume NAME...", short: "Resume the management of paused hosts",
	long:    `Unset spec.paused of WindowsInstances.`,
	example: "  kubectl windows resume win-worker-1",
	write:   func(ctx context.Context, c client.Client, i fleet.Instance) error { return setPaused(ctx, c, i, false) },
	done:    pauseObserved(false), doneMessage: "resumed", timeout: shortTimeout,
}

func setPaused(ctx context.Context, c client.Client, i fleet.Instance, paused bool) error {
	return patchObject(ctx, c, &i.WindowsInstance, map[string]any{"spec": map[string]any{"paused": paused}})
}

// pauseObserved returns a function that reports whether the operator has observed the pause, or the end of the pause.
func pauseObserved(paused bool) func(context.Context, client.Client, fleet.Instance, *fleet.Instance) (bool, error) {
	return func(_ context.Context, _ client.Client, _ fleet.Instance, now *fleet.Instance) (bool, error) {
		return now != nil && now.Spec.Paused == paused && now.Status.ObservedGeneration == now.Generation, nil
	}
}

var retry = request{
	use: "retry NAME...", short: "Retry a failed change immediately",
	long: `Set the annotation ` + v1alpha1.AnnotationRetry + ` of WindowsInstances. The operator
retries the change when the disruption policy allows the disruption.`,
	example: "  kubectl windows retry win-worker-1",
	refuse: func(i fleet.Instance) error {
		if i.Status.FailedChange == nil {
			return fmt.Errorf("no change of %s has failed, so there is nothing to retry. See: kubectl windows status %s",
				i.Name, i.Name)
		}
		return nil
	},
	write: func(ctx context.Context, c client.Client, i fleet.Instance) error {
		return patchObject(ctx, c, &i.WindowsInstance, annotationPatch(v1alpha1.AnnotationRetry, "now"))
	},
	done: func(_ context.Context, _ client.Client, _ fleet.Instance, now *fleet.Instance) (bool, error) {
		if now == nil {
			return false, nil
		}
		_, asked := now.Annotations[v1alpha1.AnnotationRetry]
		return !asked, nil
	},
	doneMessage: "the change is retried", timeout: shortTimeout,
}

var reboot = request{
	use: "reboot NAME...", short: "Restart hosts, one by one as the disruption policy allows",
	long: `Set the annotation ` + v1alpha1.AnnotationRebootRequired + ` of Nodes. When the
disruption policy allows the restart, the operator drains the node, restarts the host, checks the node and uncordons the node.`,
	example: `  kubectl windows reboot win-worker-1

  # Without waiting for it
  kubectl windows reboot win-worker-1 --yes --wait=false`,
	danger: func(i fleet.Instance) string {
		return fmt.Sprintf("The pods of node %s are evicted, and its host restarts.", fleet.NodeName(i))
	},
	refuse: func(i fleet.Instance) error {
		if fleet.NodeName(i) == "" {
			return fmt.Errorf("%s is not a node yet: restart the host manually", i.Name)
		}
		return nil
	},
	write: func(ctx context.Context, c client.Client, i fleet.Instance) error {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fleet.NodeName(i)}}
		return patchObject(ctx, c, node, annotationPatch(v1alpha1.AnnotationRebootRequired, ""))
	},
	done: func(ctx context.Context, c client.Client, before fleet.Instance, _ *fleet.Instance) (bool, error) {
		node := &corev1.Node{}
		err := c.Get(ctx, client.ObjectKey{Name: fleet.NodeName(before)}, node)
		if apierrors.IsNotFound(err) {
			return false, fmt.Errorf("Node %s was deleted meanwhile", fleet.NodeName(before)) //nolint:staticcheck // a kind begins with a capital
		}
		if err != nil {
			return false, fmt.Errorf("read Node %s: %w", fleet.NodeName(before), err)
		}
		_, asked := node.Annotations[v1alpha1.AnnotationRebootRequired]
		return !asked, nil
	},
	doneMessage: "restarted", timeout: time.Hour,
}

var forget = request{
	use: "forget NAME...", short: "Remove nodes whose hosts no longer exist",
	long: `Set the annotation ` + v1alpha1.AnnotationForgetHost + ` of WindowsInstances that are
being removed. The operator then deletes the Node without the host. The changes on the host stay; an event lists the changes.`,
	example: "  kubectl windows forget win-worker-1",
	danger: func(i fleet.Instance) string {
		return fmt.Sprintf("Node %s is deleted, and host %s is not restored: do this only if the host no longer exists.",
			fleet.NodeName(i), i.Spec.Address)
	},
	refuse: func(i fleet.Instance) error {
		switch {
		case i.Spec.Source.Machine != nil:
			return fmt.Errorf("%s is the host of a Machine: delete Machine %s instead", i.Name,
				i.Spec.Source.Machine.Name)
		case i.Spec.DesiredState != v1alpha1.DesiredStateRemoved:
			return fmt.Errorf("%s is not being removed: first delete key %s from the ConfigMap windows-instances", i.Name,
				i.Spec.Source.ConfigMapKey)
		}
		return nil
	},
	write: func(ctx context.Context, c client.Client, i fleet.Instance) error {
		return patchObject(ctx, c, &i.WindowsInstance, annotationPatch(v1alpha1.AnnotationForgetHost, "true"))
	},
	done: func(_ context.Context, _ client.Client, _ fleet.Instance, now *fleet.Instance) (bool, error) {
		return now == nil, nil
	},
	doneMessage: "removed", timeout: 10 * time.Minute,
}

// fingerprints matches fingerprints as printed by ssh-keygen -l.
var fingerprints = regexp.MustCompile(`^SHA256:[A-Za-z0-9+/]{43}$`)

// acceptHostKey requires a fingerprint in addition to the name: the key presented over the network is not trusted.
func acceptHostKey(a *cmdutil.Access) *cobra.Command {
	fingerprint := ""
	r := &runner{Access: a, request: request{
		use: "accept-host-key NAME FINGERPRINT", short: "Accept the SSH host key of a host that was reinstalled",
		long: `Set the annotation ` + v1alpha1.AnnotationAcceptHostKey + ` of a WindowsInstance.
Read the fingerprint on the console of the host, and not from a message: another machine may have answered.

  ssh-keygen -l -f C:\ProgramData\ssh\ssh_host_ed25519_key.pub`,
		example: "  kubectl windows accept-host-key win-worker-1 SHA256:n7Xy…",
		danger: func(i fleet.Instance) string {
			return fmt.Sprintf("The operator then trusts the host of %s with the key %s, and sends it the cluster's credentials for nodes.",
				i.Name, fingerprint)
		},
		done: func(_ context.Context, _ client.Client, _ fleet.Instance, now *fleet.Instance) (bool, error) {
			return now != nil && now.Status.HostKey != nil && now.Status.HostKey.Fingerprint == fingerprint, nil
		},
		write: func(ctx context.Context, c client.Client, i fleet.Instance) error {
			return patchObject(ctx, c, &i.WindowsInstance, annotationPatch(v1alpha1.AnnotationAcceptHostKey, fingerprint))
		},
		doneMessage: "the key is accepted", timeout: 5 * time.Minute,
	}}
	c := &cobra.Command{
		Use: r.use, Short: r.short, Long: r.long, Example: r.example, Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, arguments []string) error {
			fingerprint = arguments[1]
			if !fingerprints.MatchString(fingerprint) {
				return errors.New("invalid fingerprint: use SHA256: and 43 characters, as printed by ssh-keygen -l")
			}
			return r.runRequests(cmd.Context(), arguments[:1])
		},
	}
	r.addFlags(c)
	return c
}
