package podexec

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
	"k8s.io/streaming/pkg/httpstream/wsstream"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/cmdutil"
)

// cluster is an API server with pods of the operator that run commands.
type cluster struct {
	pods  []corev1.Pod
	lease *coordinationv1.Lease
	// noSockets refuses WebSockets, as old API servers do, and forbidden refuses the right to run commands.
	noSockets, forbidden bool
	// program runs in a pod.
	program func(arguments []string, in io.Reader, out, errOut io.Writer) (status int)

	ran     atomic.Value // string: the pod that ran a command
	sockets atomic.Int32
}

// newPod returns a Pod for running commands in the cluster.
func (c *cluster) newPod(t *testing.T) Pod {
	t.Helper()
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	a := cmdutil.New(genericiooptions.NewTestIOStreamsDiscard(), clock.RealClock{})
	a.Flags.APIServer, a.Flags.KubeConfig = ptr.To(server.URL), ptr.To("/dev/null")
	return New(a)
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	root := "/api/v1/namespaces/" + cmdutil.DefaultNamespace + "/pods"
	switch {
	case r.URL.Path == root:
		writeJSON(w, http.StatusOK, corev1.PodList{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: c.pods})
	case strings.HasSuffix(r.URL.Path, "/leases/"+v1alpha1.OperatorLease) && c.lease != nil:
		writeJSON(w, http.StatusOK, c.lease)
	case strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews"):
		writeJSON(w, http.StatusCreated, authorizationv1.SelfSubjectAccessReview{
			TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"},
			Status:   authorizationv1.SubjectAccessReviewStatus{Allowed: !c.forbidden}})
	case strings.HasSuffix(r.URL.Path, "/exec") && c.forbidden:
		writeJSON(w, http.StatusForbidden, newStatus(metav1.StatusReasonForbidden, http.StatusForbidden,
			`pods "operator-1" is forbidden: User "nobody" cannot create resource "pods/exec"`))
	case strings.HasSuffix(r.URL.Path, "/exec"):
		c.ran.Store(strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, root+"/"), "/exec"))
		c.serveExec(w, r)
	default:
		writeJSON(w, http.StatusNotFound, newStatus(metav1.StatusReasonNotFound, http.StatusNotFound, r.URL.Path+" is not there"))
	}
}

func newStatus(reason metav1.StatusReason, code int32, message string) metav1.Status {
	return metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Reason: reason, Code: code, Message: message}
}

func writeJSON(w http.ResponseWriter, code int, object any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(object) // the client would report the error
}

// serveExec serves a command over a WebSocket or SPDY.
func (c *cluster) serveExec(w http.ResponseWriter, r *http.Request) {
	command := r.URL.Query()["command"]
	if wsstream.IsWebSocketRequest(r) {
		if c.noSockets {
			http.Error(w, "no WebSockets here", http.StatusBadRequest)
			return
		}
		c.sockets.Add(1)
		c.execSocket(w, r, command)
		return
	}
	c.execSPDY(w, r, command)
}

func (c *cluster) execSocket(w http.ResponseWriter, r *http.Request, command []string) {
	conn := wsstream.NewConn(map[string]wsstream.ChannelProtocolConfig{
		remotecommand.StreamProtocolV5Name: {Binary: true, Channels: []wsstream.ChannelType{
			wsstream.ReadChannel, wsstream.WriteChannel, wsstream.WriteChannel, wsstream.WriteChannel, wsstream.ReadChannel,
		}},
	})
	_, streams, err := conn.Open(w, r)
	if err != nil {
		return
	}
	defer conn.Close()
	status := c.program(command, streams[0], streams[1], streams[2])
	_, _ = streams[3].Write(encodeExitStatus(status))
}

func (c *cluster) execSPDY(w http.ResponseWriter, r *http.Request, command []string) {
	if _, err := httpstream.Handshake(r, w, []string{remotecommand.StreamProtocolV4Name}); err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	created := make(chan httpstream.Stream, 4)
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, _ <-chan struct{}) error {
		created <- s
		return nil
	})
	if conn == nil {
		return
	}
	defer conn.Close()
	streams := map[string]httpstream.Stream{}
	for range 4 {
		s := <-created
		streams[s.Headers().Get(corev1.StreamType)] = s
	}
	status := c.program(command, streams[corev1.StreamTypeStdin], streams[corev1.StreamTypeStdout], streams[corev1.StreamTypeStderr])
	_, _ = streams[corev1.StreamTypeError].Write(encodeExitStatus(status))
}

// encodeExitStatus returns the message of a kubelet for the exit status of a command.
func encodeExitStatus(status int) []byte {
	result := metav1.Status{Status: metav1.StatusSuccess}
	if status != 0 {
		result = newStatus(remotecommand.NonZeroExitCodeReason, http.StatusInternalServerError, "it has failed")
		result.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{
			{Type: remotecommand.ExitCodeCauseType, Message: fmt.Sprint(status)}}}
	}
	encoded, _ := json.Marshal(result) // without cycles
	return encoded
}

// operatorPod returns a pod of the operator.
func operatorPod(name string, ready corev1.ConditionStatus, change ...func(*corev1.Pod)) corev1.Pod {
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: cmdutil.DefaultNamespace, Name: name},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "sidecar"},
			{Name: containerName, Args: []string{"--payload-dir=/elsewhere"}}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}},
	}
	for _, each := range change {
		each(&pod)
	}
	return pod
}

func oneOperator() *cluster {
	return &cluster{pods: []corev1.Pod{operatorPod("operator-1", corev1.ConditionTrue)}}
}

func TestRun_CommandRunsInOperatorPod(t *testing.T) {
	for name, noSockets := range map[string]bool{"over a WebSocket": false, "over SPDY, where there are none": true} {
		t.Run(name, func(t *testing.T) {
			c := oneOperator()
			c.noSockets = noSockets
			var line []string
			c.program = func(arguments []string, _ io.Reader, out, errOut io.Writer) int {
				line = arguments
				_, _ = io.WriteString(out, "3 steps\n")
				_, _ = io.WriteString(errOut, "slow host\n")
				return Found
			}
			var out, errOut bytes.Buffer
			status, err := c.newPod(t).Run(t.Context(), []string{"plan", "win-1"}, Streams{Out: &out, ErrOut: &errOut})
			if err != nil || status != Found || out.String() != "3 steps\n" || errOut.String() != "slow host\n" {
				t.Errorf("status %d, %v, output %q and %q", status, err, out.String(), errOut.String())
			}
			if want := []string{"/usr/bin/wmco", "--payload-dir=/elsewhere", "plan", "--attached", "win-1"}; !slices.Equal(line, want) {
				t.Errorf("it ran %q, want %q", line, want)
			}
			if used := c.sockets.Load() > 0; used == noSockets {
				t.Errorf("a WebSocket was used: %t", used)
			}
		})
	}
}

func TestRun_InterruptionEndsCommandInPod(t *testing.T) {
	c := oneOperator()
	runs, closed := make(chan struct{}), make(chan struct{})
	c.program = func(_ []string, in io.Reader, _, _ io.Writer) int {
		close(runs)
		_, _ = io.Copy(io.Discard, in) // until the caller disconnects
		close(closed)
		return 0
	}
	ctx, interrupt := context.WithCancelCause(t.Context())
	interrupted := errors.New("interrupted")
	go func() {
		<-runs
		interrupt(interrupted)
	}()
	if _, err := c.newPod(t).Run(ctx, []string{"plan"}, Streams{Out: io.Discard, ErrOut: io.Discard}); !errors.Is(err, interrupted) {
		t.Errorf("the error is %v", err)
	}
	select {
	case <-closed:
	case <-time.After(time.Minute):
		t.Error("the command goes on in the pod")
	}
}

// programWithStatus returns a program that ends with a status and prints nothing.
func programWithStatus(status int) func([]string, io.Reader, io.Writer, io.Writer) int {
	return func([]string, io.Reader, io.Writer, io.Writer) int { return status }
}

func TestRun_FailureNamesCause(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(*cluster)
		messages []string
	}{
		"the right to run commands in pods is missing": {func(c *cluster) { c.forbidden = true },
			[]string{`cannot create resource "pods/exec"`, "An administrator of the cluster can grant this right"}},
		"there is no operator": {func(c *cluster) { c.pods = nil },
			[]string{"no pod of the operator is ready in namespace " + cmdutil.DefaultNamespace + ": no pod exists"}},
		"the operator is not ready": {func(c *cluster) {
			c.pods = []corev1.Pod{operatorPod("operator-1", corev1.ConditionFalse)}
		}, []string{"operator-1 is Running", "kubectl get pods"}},
		"the operator is older, and does not have the command or a flag": {func(c *cluster) {
			c.program = programWithStatus(UnknownFlag)
		}, []string{"the operator in pod operator-1 does not have the command plan or one of its flags: the operator is older", "Upgrade the operator"}},
		"the command was killed": {func(c *cluster) { c.program = programWithStatus(137) },
			[]string{"pod operator-1 was killed (status 137)", "memory limit of the container may be too low", "fewer hosts"}},
		"the command has crashed": {func(c *cluster) { c.program = programWithStatus(2) },
			[]string{"pod operator-1 failed with status 2", "Try again"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := oneOperator()
			c.change(in)
			_, err := in.newPod(t).Run(t.Context(), []string{"plan", "win-1", "--output=text"}, Streams{Out: io.Discard, ErrOut: io.Discard})
			for _, words := range c.messages {
				if err == nil || !strings.Contains(err.Error(), words) {
					t.Errorf("the error is %v, want one with %q", err, words)
				}
			}
		})
	}
}

func TestSelectLeader(t *testing.T) {
	older := func(pod *corev1.Pod) { pod.CreationTimestamp = metav1.Unix(1000, 0) }
	younger := func(pod *corev1.Pod) { pod.CreationTimestamp = metav1.Unix(2000, 0) }
	held := func(identity string) *coordinationv1.Lease {
		return &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &identity}}
	}
	for name, c := range map[string]struct {
		pods  []corev1.Pod
		lease *coordinationv1.Lease
		want  string
	}{
		"the holder of the Lease": {[]corev1.Pod{operatorPod("a", corev1.ConditionTrue, older),
			operatorPod("b", corev1.ConditionTrue, younger)}, held("b_uid"), "b"},
		"not one whose name only begins so": {[]corev1.Pod{operatorPod("operator", corev1.ConditionTrue, younger),
			operatorPod("operator-2", corev1.ConditionTrue, older)}, held("operator-2_uid"), "operator-2"},
		"without a Lease the one for which others wait": {[]corev1.Pod{operatorPod("b", corev1.ConditionTrue, younger),
			operatorPod("a", corev1.ConditionTrue, older)}, nil, "a"},
		"never one that is not ready": {[]corev1.Pod{operatorPod("a", corev1.ConditionFalse, older),
			operatorPod("b", corev1.ConditionTrue, younger)}, held("a_uid"), "b"},
		"never one that is being deleted": {[]corev1.Pod{operatorPod("a", corev1.ConditionTrue, older,
			func(pod *corev1.Pod) { pod.DeletionTimestamp = ptr.To(metav1.Unix(3000, 0)) }),
			operatorPod("b", corev1.ConditionTrue, younger)}, nil, "b"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := selectLeader(c.pods, c.lease); got == nil || got.Name != c.want {
				t.Errorf("it is %v, want %s", got, c.want)
			}
		})
	}
}
