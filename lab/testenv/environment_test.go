package testenv

import (
	"bufio"
	"context"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/lab/cluster"
	"github.com/windows-machine-config/wmco/lab/cluster/clustertest"
)

var shared = clustertest.New(cluster.Options{Profile: cluster.OpenShift})

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

func newRig(t *testing.T, options Options) *Environment {
	t.Helper()
	options.Cluster = shared.Cluster(t)
	r, err := New(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func newTimeoutContext(t *testing.T, limit time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

func isAllowed(t *testing.T, config *rest.Config, attributes authorizationv1.ResourceAttributes) bool {
	t.Helper()
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &attributes}}
	review, err = clientset.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), review,
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return review.Status.Allowed
}

func TestInstallOperator(t *testing.T) {
	r := newRig(t, Options{})
	const namespace = "windows-operator"
	config, err := r.InstallOperator(t.Context(), namespace)
	if err != nil {
		t.Fatal(err)
	}
	//
	t.Run("the operator may do its work in the namespace that it was installed in", func(t *testing.T) {
		for _, attributes := range []authorizationv1.ResourceAttributes{
			{Namespace: namespace, Group: v1alpha1.GroupVersion.Group, Resource: "windowsinstances", Verb: "create"},
			{Namespace: namespace, Resource: "secrets", Name: "cloud-private-key", Verb: "get"},
			{Resource: "nodes", Verb: "patch"},
		} {
			if !isAllowed(t, config, attributes) {
				t.Errorf("it may not %v", attributes)
			}
		}
	})
	t.Run("the operator may do nothing that it does not need", func(t *testing.T) {
		for _, attributes := range []authorizationv1.ResourceAttributes{
			{Namespace: namespace, Resource: "secrets", Name: "another", Verb: "get"},
			{Namespace: "kube-system", Resource: "secrets", Verb: "list"},
			{Namespace: "default", Resource: "pods", Verb: "create"},
			{Resource: "nodes", Verb: "create"},
		} {
			if isAllowed(t, config, attributes) {
				t.Errorf("it may %v", attributes)
			}
		}
	})
	t.Run("installing it again changes nothing and fails nowhere", func(t *testing.T) {
		if _, err := r.InstallOperator(t.Context(), namespace); err != nil {
			t.Error(err)
		}
	})
}

func TestExamples(t *testing.T) {
	r := newRig(t, Options{})
	//
	for _, name := range []string{"wmco-namespace.yaml", "windows-instances.yaml", "windows-pod.yaml"} {
		t.Run("the API server accepts "+name+" as it is", func(t *testing.T) {
			object, err := Example(name)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Apply(t.Context(), object); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("the hosts of the test take the place of the example's", func(t *testing.T) {
		if err := r.SetInstances(t.Context(), map[string]string{"10.9.0.1": "username=core"}); err != nil {
			t.Fatal(err)
		}
		var instances corev1.ConfigMap
		key := client.ObjectKey{Namespace: Namespace, Name: "windows-instances"}
		if err := r.Client.Get(t.Context(), key, &instances); err != nil || len(instances.Data) != 1 ||
			instances.Data["10.9.0.1"] != "username=core" {
			t.Errorf("the ConfigMap has %v, %v", instances.Data, err)
		}
	})
	if err := r.Client.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default",
		Name: "windows-sample"}}); err != nil {
		t.Error(err)
	}
}

func TestHosts(t *testing.T) {
	r := newRig(t, Options{Hosts: Hosts(4)})
	t.Run("hosts are listed by address and by name in turn", func(t *testing.T) {
		entries := r.Entries()
		if len(entries) != 4 || entries["10.9.0.1"] != "username=Administrator" ||
			entries["instance-4.example.com"] != "username=core" {
			t.Errorf("the entries are %v", entries)
		}
	})
	for _, address := range []string{"10.9.0.3:22", "instance-2.example.com:22"} {
		t.Run("an SSH server answers on "+address, func(t *testing.T) {
			conn, err := r.Network().DialContext(t.Context(), "tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.HasPrefix(line, "SSH-2.0-") {
				t.Errorf("it said %q, %v", line, err)
			}
		})
	}
	t.Run("two hosts cannot have one address", func(t *testing.T) {
		if _, err := r.AddHost(t.Context(), HostOptions{Name: "other", Address: "10.9.0.1"}); err == nil {
			t.Error("the second was made")
		}
	})
}

func TestWires(t *testing.T) {
	t.Run("a killed operator's connections are cut, and it gets no new ones", func(t *testing.T) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		w := &wires{open: map[net.Conn]struct{}{}}
		dial := w.wrapDialer(new(net.Dialer).DialContext)
		conn, err := dial(t.Context(), "tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		w.cutConnections()
		if _, err := conn.Write([]byte("x")); err == nil {
			t.Error("the connection still takes data")
		}
		if _, err := dial(t.Context(), "tcp", listener.Addr().String()); err == nil {
			t.Error("a new connection was made")
		}
	})
}
