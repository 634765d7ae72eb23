package fakepod

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os/exec"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/remotecommand"
	streaming "k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Name is the name of the operator's Deployment and of its Pod.
const Name = "windows-machine-config-operator"

// KubeletPort is the port of a kubelet that the API server connects to.
const KubeletPort = 10250

// idleTimeout ends a connection that carries no data.
const idleTimeout = 10 * time.Minute

// Kubelet serves the Pod of an operator that runs as a process. The API server sends the commands of kubectl
// exec to this Kubelet, as to the kubelet of a Linux node.
type Kubelet struct {
	// Client creates the Pod.
	Client client.Client
	// Namespace is the namespace of the operator.
	Namespace string
	// Node is the name of the Linux node of the Pod, and Address its internal IP address, which this machine must have.
	Node, Address string
	// Signer signs the serving certificate. The API server trusts this signer for kubelets.
	Signer tls.Certificate
	// Log is the file with the operator's log, which kubectl logs prints completely.
	Log string
	// Command returns a command of the operator's program, with the flags and the environment of the operator.
	Command func(ctx context.Context, arguments ...string) *exec.Cmd
}

// Run creates the Pod and serves commands until ctx is done. Ready is called when both are possible.
func (k Kubelet) Run(ctx context.Context, ready func()) error {
	certificate, err := k.newServingCertificate()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(k.Address, fmt.Sprint(KubeletPort)))
	if err != nil {
		return fmt.Errorf("serve the Pod of the operator: %w", err)
	}
	if err := k.createPod(ctx); err != nil {
		return errors.Join(err, listener.Close())
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/exec/{namespace}/{pod}/{container}", k.serveExec)
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, k.Log) })
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute, BaseContext: func(net.Listener) context.Context { return ctx }}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	ready()
	// An HTTP/2 connection cannot be upgraded.
	err = server.Serve(tls.NewListener(listener, &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate},
		NextProtos: []string{"http/1.1"}}))
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("serve the Pod of the operator: %w", err)
}

// createPod creates the Pod of the Deployment, which has 0 replicas in the lab. Without an IP address of the
// Pod no Service gets an endpoint.
func (k Kubelet) createPod(ctx context.Context) error {
	var deployment appsv1.Deployment
	if err := k.Client.Get(ctx, client.ObjectKey{Namespace: k.Namespace, Name: Name}, &deployment); err != nil {
		return fmt.Errorf("read the Deployment of the operator: %w", err)
	}
	template := deployment.Spec.Template
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: k.Namespace, Name: Name, Labels: template.Labels, Annotations: template.Annotations},
		Spec: template.Spec}
	pod.Spec.NodeName = k.Node
	if err := k.Client.Create(ctx, pod); err != nil {
		return fmt.Errorf("create the Pod of the operator: %w", err)
	}
	now := metav1.Now()
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &now, Conditions: []corev1.PodCondition{
		{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now},
	}}
	for _, container := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: container.Name, Image: container.Image,
			Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}})
	}
	if err := k.Client.Status().Update(ctx, pod); err != nil {
		return fmt.Errorf("report the Pod of the operator as running: %w", err)
	}
	return nil
}

func (k Kubelet) serveExec(w http.ResponseWriter, r *http.Request) {
	if r.PathValue("namespace") != k.Namespace || r.PathValue("pod") != Name {
		http.Error(w, "there is no such pod on this node", http.StatusNotFound)
		return
	}
	options, err := streaming.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	streaming.ServeExec(w, r, k, Name, "", r.PathValue("container"), r.URL.Query()["command"], options, idleTimeout, time.Minute,
		remotecommand.SupportedStreamingProtocols)
}

// ExecInContainer implements streaming.Executor. The line starts with the program and the flags of the
// container, which Command replaces.
func (k Kubelet) ExecInContainer(ctx context.Context, _, _, _ string, line []string, in io.Reader, out, errOut io.WriteCloser, _ bool,
	_ <-chan streaming.TerminalSize, _ time.Duration) error {
	var deployment appsv1.Deployment
	if err := k.Client.Get(ctx, client.ObjectKey{Namespace: k.Namespace, Name: Name}, &deployment); err != nil {
		return fmt.Errorf("read the Deployment of the operator: %w", err)
	}
	flags := len(deployment.Spec.Template.Spec.Containers[0].Args)
	if len(line) <= 1+flags {
		return fmt.Errorf("the Pod has no program but the operator's, and no shell: %q", line)
	}
	command := k.Command(ctx, line[1+flags:]...)
	command.Stdout, command.Stderr = out, errOut
	input, err := command.StdinPipe() // command.Stdin would wait for the end of the input after the end of the command
	if err != nil {
		return fmt.Errorf("run the operator's program: %w", err)
	}
	go func() {
		_, _ = io.Copy(input, in)
		_ = input.Close()
	}()
	var ended *exec.ExitError
	if err := command.Run(); errors.As(err, &ended) {
		return utilexec.CodeExitError{Err: err, Code: ended.ExitCode()}
	} else if err != nil {
		return fmt.Errorf("run the operator's program: %w", err)
	}
	return nil
}

// newServingCertificate returns a serving certificate for the address.
func (k Kubelet) newServingCertificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make the key of the operator's node: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{Organization: []string{"system:nodes"}, CommonName: "system:node:" + k.Node},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(0, 1, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, IPAddresses: []net.IP{net.ParseIP(k.Address)},
	}
	signer, err := x509.ParseCertificate(k.Signer.Certificate[0])
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("read the signer of kubelets' certificates: %w", err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, signer, key.Public(), k.Signer.PrivateKey)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("sign the certificate of the operator's node: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
