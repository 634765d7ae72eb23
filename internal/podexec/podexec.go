// Package podexec runs commands of the operator's program in the operator's pod, which has the operator's
// rights, key and payload.
package podexec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"syscall"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/windows-machine-config/wmco/internal/cmdutil"
)

// program is the operator's program in the image.
const program = "/usr/bin/wmco"

// attached makes the program end when its standard input ends: a program in a pod does not notice by itself
// that the caller has disconnected.
const attached = "--attached"

// Streams holds the streams of a command. The standard input is the content of In, and stays open afterwards;
// In may be nil.
type Streams struct {
	In          io.Reader
	Out, ErrOut io.Writer
}

// Runner runs a command of the operator's program, and returns its exit status.
type Runner interface {
	Run(ctx context.Context, arguments []string, streams Streams) (status int, err error)
}

// ExitStatus ends the program with the status of a command in the operator's pod, which has printed the reason.
type ExitStatus int

func (s ExitStatus) Error() string {
	return fmt.Sprintf("the command in the operator's pod ended with status %d", int(s))
}

// Pod runs commands in the pod of the leading operator.
type Pod struct{ access *cmdutil.Access }

// New returns the runner for the cluster selected by the flags.
func New(a *cmdutil.Access) Pod { return Pod{access: a} }

// Run runs a command. It returns when the command or the context ends; the end of the context also ends the command.
func (p Pod) Run(ctx context.Context, arguments []string, streams Streams) (int, error) {
	config, err := p.access.Config()
	if err != nil {
		return 0, err
	}
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return 0, fmt.Errorf("connect to the cluster: %w", err)
	}
	pod, err := findLeaderPod(ctx, clientset, p.access.Namespace())
	if err != nil {
		return 0, cmdutil.ExplainError(err)
	}
	container := operatorContainer(pod)
	executor, err := executorFor(config, clientset, pod, container.Name, commandLine(container, arguments))
	if err != nil {
		return 0, err
	}
	status, err := p.streamCommand(ctx, executor, streams)
	if err != nil {
		return 0, fmt.Errorf("run %s in pod %s of the operator: %w", arguments[0], pod.Name, explainError(ctx, clientset, pod, err))
	}
	return status, checkStatus(pod.Name, arguments[0], status)
}

// Exit statuses of the operator's program besides 0 and 1. Go programs that crash exit with 2.
const (
	// Found means that a command has found changes or failures.
	Found = 3
	// UnknownFlag means that the program lacks a flag or the command: the first flag of each command is
	// attached, which the program itself lacks.
	UnknownFlag = 64
)

// checkStatus returns an error for an exit status that is no result of a command.
func checkStatus(pod, command string, status int) error {
	switch status {
	case 0, 1, Found:
		return nil
	case UnknownFlag:
		return fmt.Errorf("the operator in pod %s does not have the command %s or one of its flags: the operator is older than this program. "+
			"Upgrade the operator, or use the kubectl windows of its release", pod, command)
	case 128 + int(syscall.SIGKILL):
		return fmt.Errorf("the command in pod %s was killed (status %d) before it returned a result; the memory limit of the container may be too low. "+
			"Select fewer hosts at once, and see: kubectl describe pod %s", pod, status, pod)
	}
	return fmt.Errorf("the command in pod %s failed with status %d; see its output above, if any. "+
		"Try again; if it fails again, attach the output to a support case", pod, status)
}

// explainError adds the missing right to the error of a command that could not run. The libraries keep only the
// text of a refusal, so the right is checked with the API server.
func explainError(ctx context.Context, clientset kubernetes.Interface, pod *corev1.Pod, err error) error {
	if ctx.Err() != nil {
		return err
	}
	review, failed := clientset.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: pod.Namespace, Name: pod.Name, Verb: "create", Resource: "pods", Subresource: "exec",
		}},
	}, metav1.CreateOptions{})
	if failed != nil || review.Status.Allowed {
		return err
	}
	return cmdutil.ExplainError(apierrors.NewForbidden(corev1.Resource("pods/exec"), pod.Name, err))
}

// streamCommand runs the command. The standard input stays open until the command or the context ends.
func (p Pod) streamCommand(ctx context.Context, executor remotecommand.Executor, streams Streams) (int, error) {
	open, hold := io.Pipe()
	defer func() { _ = hold.Close() }()
	input := io.Reader(open)
	if streams.In != nil {
		input = io.MultiReader(streams.In, open)
	}
	err := executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: input, Stdout: streams.Out, Stderr: streams.ErrOut})
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	var ended exec.CodeExitError
	if errors.As(err, &ended) {
		return ended.Code, nil
	}
	return 0, err
}

// commandLine returns the operator's command line with the command appended: its flags define the payload
// directory and the allowed algorithms. The common flag of all commands is the first flag: see UnknownFlag.
func commandLine(container corev1.Container, arguments []string) []string {
	line := []string{program}
	if len(container.Command) > 0 {
		line = container.Command
	}
	return slices.Concat(line, container.Args, []string{arguments[0], attached}, arguments[1:])
}

// operatorContainer returns the container of the operator in its pod.
func operatorContainer(pod *corev1.Pod) corev1.Container {
	for _, container := range pod.Spec.Containers {
		if container.Name == containerName {
			return container
		}
	}
	return pod.Spec.Containers[0]
}

// executorFor uses a WebSocket, and SPDY for API servers and proxies without WebSockets.
func executorFor(config *rest.Config, clientset kubernetes.Interface, pod *corev1.Pod, container string,
	command []string) (remotecommand.Executor, error) {
	url := clientset.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).
		SubResource("exec").VersionedParams(&corev1.PodExecOptions{
		Container: container, Command: command, Stdin: true, Stdout: true, Stderr: true,
	}, scheme.ParameterCodec).URL()
	socket, err := remotecommand.NewWebSocketExecutor(config, http.MethodGet, url.String())
	if err != nil {
		return nil, fmt.Errorf("connect to pod %s: %w", pod.Name, err)
	}
	spdy, err := remotecommand.NewSPDYExecutor(config, http.MethodPost, url)
	if err != nil {
		return nil, fmt.Errorf("connect to pod %s: %w", pod.Name, err)
	}
	return remotecommand.NewFallbackExecutor(socket, spdy, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
}
